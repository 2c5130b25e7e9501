"""Reading a datasource: from segments to one frame, whatever their schemas."""
