package rest

const oneCluster = "this server keeps the records of one cluster, its own"

// controlEndpoints are those of the controller beside jobs, nodes and partitions.
func controlEndpoints() []Endpoint {
	const base = "/slurm/{version}"
	return []Endpoint{
		{
			Method: get, Path: base + "/diag", Slash: true, Summary: "How the server fares", Reply: "openapi_diag_resp",
			handle: diagnose,
		},
		{
			Method: get, Path: base + "/licenses", Slash: true, Summary: "Licenses, and what is in use of them",
			Reply: "openapi_licenses_resp", handle: listLicenses,
		},
		{
			Method: get, Path: base + "/shares", Summary: "Shares, usage and fair-share factors",
			Query: []string{"accounts", "users"}, Reply: "openapi_shares_resp", handle: listShares,
		},
		{
			Method: get, Path: base + "/reconfigure", Slash: true, Summary: "Read the settings again", Reply: "openapi_resp",
			handle: reconfigure,
		},
		{
			Method: get, Path: base + "/reservations", Slash: true, Summary: "List advance reservations", Query: listQuery,
			Reply: "openapi_reservation_resp", handle: reserve(listReservations),
		},
		{
			Method: post, Path: base + "/reservations", Slash: true, From: 43, Summary: "Make or change reservations",
			Body: "reservation_mod_req", Reply: "openapi_reservation_mod_resp", handle: reserve(putReservations),
		},
		{
			Method: post, Path: base + "/reservation", From: 43, Summary: "Make or change a reservation",
			Body: "reservation_desc_msg", Reply: "openapi_reservation_mod_resp", handle: reserve(putReservation),
		},
		{
			Method: get, Path: base + "/reservation/{reservation_name}", Summary: "One advance reservation", Query: listQuery,
			Reply: "openapi_reservation_resp", handle: reserve(showReservation),
		},
		{
			Method: remove, Path: base + "/reservation/{reservation_name}", From: 43,
			Summary: "Remove an advance reservation", Reply: "openapi_resp", handle: reserve(deleteReservation),
		},
	}
}

// databaseEndpoints are those of accounting.
func databaseEndpoints() []Endpoint {
	const base = "/slurmdb/{version}"
	return []Endpoint{
		{
			Method: get, Path: base + "/jobs", Slash: true, Summary: "Jobs of the past", Query: jobConditions,
			Reply: "openapi_slurmdbd_jobs_resp", handle: inDB(listHistory),
		},
		{
			Method: get, Path: base + "/job/{job_id}", Summary: "One job and its steps",
			Reply: "openapi_slurmdbd_jobs_resp", handle: inDB(showHistory),
		},
		{
			Method: get, Path: base + "/accounts", Slash: true, Summary: "List accounts", Query: []string{"name"},
			Reply: "openapi_accounts_resp", handle: inDB(listAccounts),
		},
		{
			Method: post, Path: base + "/accounts", Slash: true, Summary: "Make or change accounts",
			Body: "openapi_accounts_resp", Reply: "openapi_resp", handle: inDB(putting("accounts", (*draft).putAccount)),
		},
		{
			Method: post, Path: base + "/accounts_association", Slash: true, Summary: "Make accounts with their limits",
			Body: "openapi_accounts_add_cond_req", Reply: "openapi_accounts_add_cond_resp_str", handle: inDB(addAccounts),
		},
		{
			Method: get, Path: base + "/account/{account_name}", Summary: "One account", Reply: "openapi_accounts_resp",
			handle: inDB(showAccount),
		},
		{
			Method: remove, Path: base + "/account/{account_name}", Summary: "Remove an account",
			Reply: "openapi_accounts_removed_resp", handle: inDB(dropAccount()),
		},
		{
			Method: get, Path: base + "/users", Slash: true, Summary: "List users", Query: []string{"name"},
			Reply: "openapi_users_resp", handle: inDB(listUsers),
		},
		{
			Method: post, Path: base + "/users", Slash: true, Summary: "Make or change users", Body: "openapi_users_resp",
			Reply: "openapi_resp", handle: inDB(putting("users", (*draft).putUser)),
		},
		{
			Method: post, Path: base + "/users_association", Slash: true, Summary: "Make users members of accounts",
			Body: "openapi_users_add_cond_req", Reply: "openapi_users_add_cond_resp_str", handle: inDB(addUsers),
		},
		{
			Method: get, Path: base + "/user/{name}", Summary: "One user", Reply: "openapi_users_resp", handle: inDB(showUser),
		},
		{
			Method: remove, Path: base + "/user/{name}", Summary: "Remove a user", Reply: "openapi_resp",
			handle: inDB(dropUser()),
		},
		{
			Method: get, Path: base + "/associations", Slash: true, Summary: "List associations",
			Query: []string{"account", "cluster", "user"}, Reply: "openapi_assocs_resp", handle: inDB(listAssocs),
		},
		{
			Method: post, Path: base + "/associations", Slash: true, Summary: "Make or change associations",
			Body: "openapi_assocs_resp", Reply: "openapi_resp", handle: inDB(putting("associations", (*draft).putAssoc)),
		},
		{
			Method: remove, Path: base + "/associations", Slash: true, Summary: "Remove associations",
			Query: []string{"account", "cluster", "user"}, Reply: "openapi_assocs_removed_resp", handle: inDB(dropAssocs),
		},
		{
			Method: get, Path: base + "/association", Slash: true, Summary: "One association",
			Query: []string{"account", "cluster", "user"}, Reply: "openapi_assocs_resp", handle: inDB(showAssoc),
		},
		{
			Method: remove, Path: base + "/association", Slash: true, Summary: "Remove an association",
			Query: []string{"account", "cluster", "user"}, Reply: "openapi_assocs_removed_resp", handle: inDB(dropAssocs),
		},
		{
			Method: get, Path: base + "/qos", Slash: true, Summary: "List qualities of service", Query: []string{"name"},
			Reply: "openapi_slurmdbd_qos_resp", handle: inDB(listQOS),
		},
		{
			Method: post, Path: base + "/qos", Slash: true, Summary: "Make or change qualities of service",
			Body: "openapi_slurmdbd_qos_resp", Reply: "openapi_resp", handle: inDB(putting("qos", (*draft).putQOS)),
		},
		{
			Method: get, Path: base + "/qos/{qos}", Summary: "One QOS", Reply: "openapi_slurmdbd_qos_resp",
			handle: inDB(showQOS),
		},
		{
			Method: remove, Path: base + "/qos/{qos}", Summary: "Remove a QOS", Reply: "openapi_slurmdbd_qos_removed_resp",
			handle: inDB(dropQOS()),
		},
		{
			Method: get, Path: base + "/clusters", Slash: true, Summary: "List clusters: this one",
			Reply: "openapi_clusters_resp", handle: inDB(listClusters),
		},
		{
			Method: post, Path: base + "/clusters", Slash: true, Summary: "Refused: there is one cluster",
			Body: "openapi_clusters_resp", Reply: "openapi_resp", handle: inDB(unsupported(oneCluster)),
		},
		{
			Method: get, Path: base + "/cluster/{cluster_name}", Summary: "One cluster", Reply: "openapi_clusters_resp",
			handle: inDB(showCluster),
		},
		{
			Method: remove, Path: base + "/cluster/{cluster_name}", Summary: "Refused: there is one cluster",
			Reply: "openapi_clusters_removed_resp", handle: inDB(unsupported(oneCluster)),
		},
		{
			Method: get, Path: base + "/wckeys", Slash: true, Summary: "List wckeys", Reply: "openapi_wckey_resp",
			handle: inDB(listKeys),
		},
		{
			Method: post, Path: base + "/wckeys", Slash: true, Summary: "Give users wckeys", Body: "openapi_wckey_resp",
			Reply: "openapi_resp", handle: inDB(putting("wckeys", (*draft).putKey)),
		},
		{
			Method: get, Path: base + "/wckey/{id}", Summary: "One wckey, by its name", Reply: "openapi_wckey_resp",
			handle: inDB(showKey),
		},
		{
			Method: remove, Path: base + "/wckey/{id}", Summary: "Take a wckey from all users",
			Reply: "openapi_wckey_removed_resp", handle: inDB(dropKey),
		},
		{
			Method: get, Path: base + "/tres", Slash: true, Summary: "What is counted", Reply: "openapi_tres_resp",
			handle: inDB(listTRES),
		},
		{
			Method: post, Path: base + "/tres", Slash: true, Summary: "Refused: resources come from nodes",
			Body: "openapi_tres_resp", Reply: "openapi_resp",
			handle: inDB(unsupported("what is counted follows from the nodes and licenses of the settings")),
		},
		{
			Method: get, Path: base + "/instances", Slash: true, Summary: "Instances of clouds: none",
			Reply: "openapi_instances_resp", handle: inDB(listInstances),
		},
		{
			Method: get, Path: base + "/instance", Slash: true, Summary: "Instances of clouds: none",
			Reply: "openapi_instances_resp", handle: inDB(listInstances),
		},
		{
			Method: get, Path: base + "/config", Summary: "All records of accounting",
			Reply: "openapi_slurmdbd_config_resp", handle: inDB(showConfig),
		},
		{
			Method: post, Path: base + "/config", Summary: "Make or change records of all kinds",
			Body: "openapi_slurmdbd_config_resp", Reply: "openapi_resp", handle: inDB(putConfig),
		},
		{
			Method: get, Path: base + "/diag", Slash: true, Summary: "How accounting fares",
			Reply: "openapi_slurmdbd_stats_resp", handle: inDB(diagnoseDatabase),
		},
		{
			Method: get, Path: base + "/ping", Slash: true, From: 42, Summary: "Is accounting there?",
			Reply: "openapi_slurmdbd_ping_resp", handle: inDB(pingDatabase),
		},
	}
}
