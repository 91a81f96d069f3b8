"""Deploys: how a service gets another version, which versions ran and which are proven good. Nothing here acts."""
