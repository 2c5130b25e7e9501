"""The collations that Spark 4.2 knows, and the one spelling of each.

A collation is `UTF8_BINARY`, `UTF8_LCASE`, `UNICODE` or a locale, followed by modifiers. Spark
reads names in any case and modifiers in any order; a fingerprint needs one spelling.
"""

from __future__ import annotations

DEFAULT = "UTF8_BINARY"

_BYTEWISE = ("UTF8_BINARY", "UTF8_LCASE")
_LOCALES = """
UNICODE af am ar ar_SAU as az be bg blo bn bo br bs bs_Cyrl ca ceb chr cs cy da de de_AUT dsb dz
ee el en en_USA eo es et fa fa_AFG ff ff_Adlm fi fil fo fr fr_CAN fy ga gl gu ha haw he he_ISR
hi hr hsb hu hy id id_IDN ig is it ja ka kk kk_Arab kl km kn ko kok ku ky lb lij lkt ln lo lt lv
mk ml mn mr ms mt my nb nb_NOR ne nl nn no nso om or pa pa_Guru pa_Guru_IND pl ps pt ro ru sa se
si sk sl smn sq sr sr_Cyrl sr_Cyrl_BIH sr_Cyrl_MNE sr_Cyrl_SRB sr_Latn sr_Latn_BIH sr_Latn_SRB
st sv sw ta te th tk tn to tr ug uk ur uz vi wae wo xh yi yo zh zh_Hans zh_Hans_CHN zh_Hans_SGP
zh_Hant zh_Hant_HKG zh_Hant_MAC zh_Hant_TWN zu
"""
_SPELLING = {name.upper(): name for name in (*_BYTEWISE, *_LOCALES.split())}

# Modifier → its group, which is named after the member that is written (the other is the default).
_MODIFIERS = {"CS": "CI", "CI": "CI", "AS": "AI", "AI": "AI", "RTRIM": "RTRIM"}


def normalize(name: str) -> str | None:
    """The one spelling of a collation name, or None when Spark does not know it."""
    parts = name.upper().split("_")
    given: dict[str, str] = {}
    while len(parts) > 1 and parts[-1] in _MODIFIERS:
        modifier = parts.pop()
        group = _MODIFIERS[modifier]
        if group in given:
            return None
        given[group] = modifier
    base = _SPELLING.get("_".join(parts))
    if base is None or (base in _BYTEWISE and given.keys() - {"RTRIM"}):
        return None
    return "_".join([base, *(m for m in ("CI", "AI", "RTRIM") if given.get(m) == m)])
