package rest

import (
	"net/http"
	"slices"
)

// listQuery is the query of listings that may be asked for only if they have changed.
var listQuery = []string{"update_time", "flags"}

const (
	get    = http.MethodGet
	post   = http.MethodPost
	remove = http.MethodDelete
)

// Endpoints is the table of the API.
func Endpoints() []Endpoint {
	return slices.Concat(jobEndpoints(), controlEndpoints(), databaseEndpoints())
}

func jobEndpoints() []Endpoint {
	return []Endpoint{
		{
			Method: get, Path: "/slurm/{version}/ping", Slash: true, Summary: "Is the controller there?",
			Reply: "openapi_ping_array_resp", handle: ping,
		},
		{
			Method: get, Path: "/slurm/{version}/jobs", Slash: true, Summary: "List jobs", Query: listQuery,
			Reply: "openapi_job_info_resp", handle: listJobs,
		},
		{
			Method: remove, Path: "/slurm/{version}/jobs", Slash: true, Summary: "End or signal all jobs that match",
			Body: "kill_jobs_msg", Reply: "openapi_kill_jobs_resp", handle: cancelJobs,
		},
		{
			Method: get, Path: "/slurm/{version}/jobs/state", Slash: true, Summary: "List jobs, or some of them",
			Query: []string{"job_id", "update_time", "flags"}, Reply: "openapi_job_info_resp", handle: jobStates,
		},
		{
			Method: post, Path: "/slurm/{version}/job/submit", Summary: "Submit a batch job, or a het job",
			Body: "job_submit_req", Reply: "openapi_job_submit_response", handle: submitJob,
		},
		{
			Method: post, Path: "/slurm/{version}/job/allocate", From: 41, Summary: "Make an allocation without a script",
			Body: "job_alloc_req", Reply: "openapi_job_alloc_resp", handle: allocateJob,
		},
		{
			Method: get, Path: "/slurm/{version}/job/{job_id}", Summary: "One job, or an array and its started tasks",
			Query: listQuery, Reply: "openapi_job_info_resp", handle: showJob,
		},
		{
			Method: post, Path: "/slurm/{version}/job/{job_id}", Summary: "Change a job", Body: "job_desc_msg",
			Reply: "openapi_job_post_response", handle: updateJob,
		},
		{
			Method: remove, Path: "/slurm/{version}/job/{job_id}", Summary: "End or signal a job",
			Query: []string{"signal", "flags"}, Reply: "openapi_kill_job_resp", handle: cancelJob,
		},
		{
			Method: get, Path: "/slurm/{version}/nodes", Slash: true, Summary: "List nodes", Query: listQuery,
			Reply: "openapi_nodes_resp", handle: listNodes,
		},
		{
			Method: post, Path: "/slurm/{version}/nodes", Slash: true, From: 42, Summary: "Change several nodes",
			Body: "update_node_msg", Reply: "openapi_resp", handle: updateListed,
		},
		{
			Method: get, Path: "/slurm/{version}/node/{node_name}", Summary: "One node", Query: listQuery,
			Reply: "openapi_nodes_resp", handle: showNode,
		},
		{
			Method: post, Path: "/slurm/{version}/node/{node_name}", Summary: "Change a node", Body: "update_node_msg",
			Reply: "openapi_resp", handle: updateNode,
		},
		{
			Method: remove, Path: "/slurm/{version}/node/{node_name}", Summary: "Forget a node", Reply: "openapi_resp",
			handle: deleteNode,
		},
		{
			Method: get, Path: "/slurm/{version}/partitions", Slash: true, Summary: "List partitions", Query: listQuery,
			Reply: "openapi_partition_resp", handle: listPartitions,
		},
		{
			Method: get, Path: "/slurm/{version}/partition/{partition_name}", Summary: "One partition", Query: listQuery,
			Reply: "openapi_partition_resp", handle: showPartition,
		},
	}
}
