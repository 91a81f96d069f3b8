"""What an engine was doing between two scrapes: idle, busy, hung, saturated, or not proven."""
