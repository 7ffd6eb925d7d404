// Fields that PostHog's objects have and ours lack. Tools send an object back as they read it, or fill in what a screen of
// PostHog keeps along with it. A field that changes nothing is accepted; a field that would change something is refused
// unless its value asks for nothing. Every other unknown field is refused (`http/management/kit/misspelt-names.ts`).
// Source: observed, the serializers of PostHog's REST API and the requests of its Terraform provider.

import { isJsonObject, type JsonValue } from '#core/json.ts'

export interface PostHogFields {
  /** Fields that PostHog computes, or that say where its screens show the object: accepted with any value. */
  readonly withoutEffect: readonly string[]
  /** Accepted only with a value that asks for nothing. */
  readonly onlyOff: readonly string[]
}

export const postHogFlagFields: PostHogFields = {
  withoutEffect: [
    ...['analytics_dashboards', 'can_edit', 'creation_context', 'experiment_set_metadata', 'has_enriched_analytics'],
    ...['is_simple_flag', 'is_used_in_replay_settings', 'last_modified_by', 'original_flag', 'surveys'],
    ...['usage_dashboard', 'user_access_level', '_create_in_folder', '_should_create_usage_dashboard'],
  ],
  onlyOff: ['evaluation_environments', 'performed_rollback', 'rollback_conditions', 'rollout_conditions'],
}

/** What PostHog's screens keep in a condition set. */
export const postHogConditionFields: PostHogFields = {
  withoutEffect: ['description', 'sort_key', 'users_affected'],
  onlyOff: [],
}

export const postHogCohortFields: PostHogFields = {
  withoutEffect: [
    ...['cohort_type', 'last_backfill_person_properties_at', 'last_error_message', 'pending_version'],
    ...['search_match_type', '_create_in_folder'],
  ],
  onlyOff: ['groups', 'query'],
}

export const postHogSurveyFields: PostHogFields = {
  withoutEffect: ['feature_flag_keys', 'iteration_start_dates', 'user_access_level', '_create_in_folder'],
  onlyOff: [],
}

export const postHogExperimentFields: PostHogFields = {
  withoutEffect: [
    ...['allow_unknown_events', 'exposure_cohort', 'exposure_preaggregation_enabled', 'holdout', 'saved_metrics'],
    ...['primary_metrics_ordered_uuids', 'secondary_metrics_ordered_uuids', 'status', 'user_access_level'],
    '_create_in_folder',
  ],
  onlyOff: ['holdout_id', 'only_count_matured_users', 'scheduling_config'],
}

/** The fields of most objects. */
export const postHogCommonFields: PostHogFields = {
  withoutEffect: ['user_access_level', '_create_in_folder'],
  onlyOff: [],
}

export const postHogKeyFields: PostHogFields = {
  withoutEffect: ['last_rolled_at', 'mask_value', 'user_id', 'value'],
  onlyOff: ['scoped_organizations'],
}

/** Fields of PostHog's projects and environments, which are the same resource here. */
export const postHogProjectFields: PostHogFields = {
  withoutEffect: [
    ...['available_setup_task_ids', 'default_modifiers', 'effective_membership_level', 'event_retention_months'],
    ...['events_retention_enforced', 'group_types', 'has_group_types', 'ingested_event', 'is_pending_deletion'],
    ...['live_events_token', 'managed_viewsets', 'organization_id'],
    ...['product_intents', 'project_id', 'updated_at', 'user_access_level'],
  ],
  onlyOff: [
    ...['access_control', 'conversations_enabled', 'conversations_settings', 'customer_analytics_config'],
    ...['default_data_theme', 'default_evaluation_contexts_enabled', 'feature_flag_policy_config'],
    ...['marketing_analytics_config', 'modifiers', 'primary_dashboard', 'proactive_tasks_enabled'],
    ...['product_tours_opt_in', 'receive_org_level_activity_logs', 'require_evaluation_contexts'],
    ...['revenue_analytics_config', 'session_recording_retention_period', 'slack_incoming_webhook', 'tags'],
    ...['web_analytics_pre_aggregated_tables_enabled', 'workflows_config'],
  ],
}

/** Options that PostHog's screens and clients send along with a query: whether to wait for its result, and its name. */
export const postHogQueryFields: PostHogFields = {
  withoutEffect: ['async', 'client_query_id', 'name', 'refresh'],
  onlyOff: ['filters_override', 'limit_context', 'variables_override'],
}

/** Whether a setting's value asks for nothing: null, false, an empty text, list or object. */
export function isEmptyOrOff(value: JsonValue): boolean {
  if (value === null || value === false || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return isJsonObject(value) && Object.keys(value).length === 0
}
