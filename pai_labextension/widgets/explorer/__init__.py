"""The cluster's files in a notebook: look, bring, fetch, put in order, choose one for a job."""
