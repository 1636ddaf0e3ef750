//! A job as Ray tells of it.

use crate::Caller;
use lockstep_queue::JobView;
use serde_json::{Map, Value, json};

/// What stands for a value that is not for this caller.
const HIDDEN: &str = "***";

/// What Ray calls `JobDetails`. Values of variables may be secrets: they are shown to whoever the job is of.
pub(super) fn details(job: &JobView, caller: &Caller) -> Value {
    let mut runtime_env: Map<String, Value> = job.runtime_env.clone().into_iter().collect();
    if !caller.owns(Some(&job.user))
        && let Some(Value::Object(variables)) = runtime_env.get_mut("env_vars")
    {
        for value in variables.values_mut() {
            *value = HIDDEN.into();
        }
    }
    json!({
        "type": "SUBMISSION",
        "job_id": null,
        "submission_id": job.id,
        "driver_info": null,
        "status": job.status,
        "entrypoint": job.entrypoint,
        "message": job.message,
        "error_type": job.error_type,
        "start_time": job.submitted_ms,
        "end_time": job.ended_ms,
        // Ray has no word for when a job that waited began.
        "lockstep_began": job.started_ms,
        "metadata": job.metadata,
        "runtime_env": runtime_env,
        "driver_agent_http_address": null,
        "driver_node_id": null,
        "driver_exit_code": job.exit_code,
    })
}
