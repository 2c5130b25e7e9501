"use strict";

// Nothing from the catalog is in here: everything is read from the page, as text.
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");

  // The theme: the system's until the button is pressed. Nothing is stored.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const toggle = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const nameToggle = () => {
    toggle.textContent = isDark() ? "Light theme" : "Dark theme";
  };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameToggle();
  });
  system.addEventListener("change", nameToggle);
  nameToggle();

  // Sorting. Figures and moments hold their value as a whole number, of any length, and begin
  // with the largest; what has no value comes last in both directions. Words compare in the same
  // way in every locale.
  const valueOf = (cell) => {
    const given = cell.dataset.sort;
    if (given === "") return null;
    return given === undefined ? cell.textContent.trim().toLowerCase() : BigInt(given);
  };
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return a === b ? 0 : sign * (a < b ? -1 : 1);
  };
  const sort = (heading) => {
    const body = heading.closest("table").tBodies[0];
    const first = heading.className === "words" ? "ascending" : "descending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = heading.ariaSort === first ? other : first;
    const sign = order === "ascending" ? 1 : -1;
    for (const one of heading.parentElement.cells) one.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const rows = [...body.rows].map((row) => [valueOf(row.cells[heading.cellIndex]), row]);
    // The sort of JavaScript is stable: rows that are equal stay as they were.
    rows.sort(([a], [b]) => compare(a, b, sign));
    body.append(...rows.map(([, row]) => row));
  };
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => sort(button.parentElement));
  }

  // Filters: a row stays if it holds every word, in whatever case.
  const filter = (input) => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const { rows } = document.getElementById(input.getAttribute("aria-controls")).tBodies[0];
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    input.nextElementSibling.value = words.length ? `${shown} of ${rows.length}` : "";
  };
  const filters = [...document.querySelectorAll(".filter input")];
  for (const input of filters) input.addEventListener("input", () => filter(input));

  // A link to a row that a filter hides takes the filter off before the page goes there.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("td a");
    const row = link && document.getElementById(link.hash.slice(1));
    if (!row?.hidden) return;
    for (const input of filters) {
      if (input.getAttribute("aria-controls") === row.closest("table").id) {
        input.value = "";
        filter(input);
      }
    }
  });

  // On paper nothing unfolds: everything is open while it is printed.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
})();
