// Printed by `npm run ui:types` from the OpenAPI document of this version.

/** What each operation of the private API takes and answers. */
export interface Operations {
  'GET /api/projects/{project_id}/activity_log/': {
    path: { project_id: string }
    query?: { limit?: number; cursor?: number; scopes?: string; item_id?: string; user?: string }
    answer: { next: string | null; previous: string | null; results: Schemas['Activity'][] }
  }
  'GET /api/activity_log/': {
    query?: { limit?: number; cursor?: number; scopes?: string; item_id?: string; user?: string }
    answer: { next: string | null; previous: string | null; results: Schemas['Activity'][] }
  }
  'GET /api/projects/': {
    query?: { limit?: number; offset?: number }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['Project'][] }
  }
  'POST /api/projects/': { body: Schemas['NewProject']; answer: Schemas['Project'] }
  'GET /api/projects/{project_id}/': { path: { project_id: string }; answer: Schemas['Project'] }
  'PATCH /api/projects/{project_id}/': {
    path: { project_id: string }
    body: Schemas['ProjectChange']
    answer: Schemas['Project']
  }
  'DELETE /api/projects/{project_id}/': { path: { project_id: string }; answer: null }
  'PATCH /api/projects/{project_id}/reset_token/': { path: { project_id: string }; answer: Schemas['Project'] }
  'PATCH /api/projects/{project_id}/rotate_secret_token/': { path: { project_id: string }; answer: Schemas['Project'] }
  'PATCH /api/projects/{project_id}/delete_secret_token_backup/': {
    path: { project_id: string }
    answer: Schemas['Project']
  }
  'GET /api/personal_api_keys/': {
    query?: { limit?: number; offset?: number }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['PersonalApiKey'][] }
  }
  'POST /api/personal_api_keys/': { body: Schemas['NewPersonalApiKey']; answer: Schemas['CreatedPersonalApiKey'] }
  'GET /api/personal_api_keys/@current/': { answer: Schemas['PersonalApiKey'] }
  'DELETE /api/personal_api_keys/@current/': { answer: null }
  'GET /api/personal_api_keys/{key_id}/': { path: { key_id: string }; answer: Schemas['PersonalApiKey'] }
  'DELETE /api/personal_api_keys/{key_id}/': { path: { key_id: string }; answer: null }
  'GET /api/users/@me/': { query?: { limit?: number }; answer: Schemas['User'] }
  'GET /api/organizations/': {
    query?: { limit?: number; offset?: number }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['Organization'][] }
  }
  'GET /api/organizations/@current/': { answer: Schemas['Organization'] }
  'POST /api/session/': {
    body: { email: string; password: string }
    answer: {
      user: {
        id: string
        email: string | null
        name: string
        role: 'viewer' | 'editor' | 'admin'
        sees_persons: boolean
        disabled: boolean
        created_at: string
        last_seen_at: string | null
        has_password: boolean
      }
      session: {
        id: string
        user_agent: string
        address: string
        created_at: string
        last_seen_at: string
        ends_at: string
        is_current: boolean
      }
      role: 'viewer' | 'editor' | 'admin'
      scopes: string[]
      projects: { id: number; uuid: string; organization: string; name: string; api_token: string; timezone: string }[]
      build: string
      sdk_url: string
    }
  }
  'GET /api/session/': {
    answer: {
      user: {
        id: string
        email: string | null
        name: string
        role: 'viewer' | 'editor' | 'admin'
        sees_persons: boolean
        disabled: boolean
        created_at: string
        last_seen_at: string | null
        has_password: boolean
      }
      session: {
        id: string
        user_agent: string
        address: string
        created_at: string
        last_seen_at: string
        ends_at: string
        is_current: boolean
      }
      role: 'viewer' | 'editor' | 'admin'
      scopes: string[]
      projects: { id: number; uuid: string; organization: string; name: string; api_token: string; timezone: string }[]
      build: string
      sdk_url: string
    }
  }
  'DELETE /api/session/': { answer: null }
  'POST /api/session/link/check/': {
    body: { token: string }
    answer: {
      purpose: 'welcome' | 'invitation' | 'reset'
      email: string | null
      name: string
      role: 'viewer' | 'editor' | 'admin'
      is_new_user: boolean
      has_password: boolean
      expires_at: string
    }
  }
  'POST /api/session/link/': {
    body: { token: string; name?: string; email?: string; password?: string }
    answer: {
      user: {
        id: string
        email: string | null
        name: string
        role: 'viewer' | 'editor' | 'admin'
        sees_persons: boolean
        disabled: boolean
        created_at: string
        last_seen_at: string | null
        has_password: boolean
      }
      session: {
        id: string
        user_agent: string
        address: string
        created_at: string
        last_seen_at: string
        ends_at: string
        is_current: boolean
      }
      role: 'viewer' | 'editor' | 'admin'
      scopes: string[]
      projects: { id: number; uuid: string; organization: string; name: string; api_token: string; timezone: string }[]
      build: string
      sdk_url: string
    }
  }
  'PATCH /api/session/user/': {
    body: { name?: string; email?: string; password?: string; current_password?: string }
    answer: {
      id: string
      email: string | null
      name: string
      role: 'viewer' | 'editor' | 'admin'
      sees_persons: boolean
      disabled: boolean
      created_at: string
      last_seen_at: string | null
      has_password: boolean
    }
  }
  'GET /api/users/@me/sessions/': {
    query?: { limit?: number; offset?: number }
    answer: {
      count: number
      next: string | null
      previous: string | null
      results: {
        id: string
        user_agent: string
        address: string
        created_at: string
        last_seen_at: string
        ends_at: string
        is_current: boolean
      }[]
    }
  }
  'DELETE /api/users/@me/sessions/': { answer: null }
  'DELETE /api/users/@me/sessions/{session_id}/': { path: { session_id: string }; answer: null }
  'GET /api/users/': {
    query?: { limit?: number; offset?: number }
    answer: {
      count: number
      next: string | null
      previous: string | null
      results: {
        id: string
        email: string | null
        name: string
        role: 'viewer' | 'editor' | 'admin'
        sees_persons: boolean
        disabled: boolean
        created_at: string
        last_seen_at: string | null
        has_password: boolean
      }[]
    }
  }
  'GET /api/users/{user_id}/': {
    path: { user_id: string }
    answer: {
      id: string
      email: string | null
      name: string
      role: 'viewer' | 'editor' | 'admin'
      sees_persons: boolean
      disabled: boolean
      created_at: string
      last_seen_at: string | null
      has_password: boolean
    }
  }
  'PATCH /api/users/{user_id}/': {
    path: { user_id: string }
    body: {
      email?: string
      name?: string
      role?: 'viewer' | 'editor' | 'admin'
      sees_persons?: boolean
      disabled?: boolean
    }
    answer: {
      id: string
      email: string | null
      name: string
      role: 'viewer' | 'editor' | 'admin'
      sees_persons: boolean
      disabled: boolean
      created_at: string
      last_seen_at: string | null
      has_password: boolean
    }
  }
  'DELETE /api/users/{user_id}/': { path: { user_id: string }; answer: null }
  'POST /api/users/{user_id}/reset_link/': {
    path: { user_id: string }
    answer: { id: string; link: string; expires_at: string }
  }
  'GET /api/users/{user_id}/sessions/': {
    path: { user_id: string }
    query?: { limit?: number; offset?: number }
    answer: {
      count: number
      next: string | null
      previous: string | null
      results: {
        id: string
        user_agent: string
        address: string
        created_at: string
        last_seen_at: string
        ends_at: string
        is_current: boolean
      }[]
    }
  }
  'DELETE /api/users/{user_id}/sessions/': { path: { user_id: string }; answer: null }
  'DELETE /api/users/{user_id}/sessions/{session_id}/': { path: { user_id: string; session_id: string }; answer: null }
  'GET /api/invitations/': {
    query?: { limit?: number; offset?: number }
    answer: {
      count: number
      next: string | null
      previous: string | null
      results: {
        id: string
        purpose: 'welcome' | 'invitation' | 'reset'
        role: 'viewer' | 'editor' | 'admin'
        sees_persons: boolean
        email: string | null
        name: string
        created_at: string
        expires_at: string
      }[]
    }
  }
  'POST /api/invitations/': {
    body: { role: 'viewer' | 'editor' | 'admin'; email?: string | null; name?: string; sees_persons?: boolean }
    answer: { id: string; link: string; expires_at: string }
  }
  'DELETE /api/invitations/{invitation_id}/': { path: { invitation_id: string }; answer: null }
  'GET /api/projects/{project_id}/feature_flags/': {
    path: { project_id: string }
    query?: {
      limit?: number
      offset?: number
      search?: string
      key?: string
      active?: boolean | 'STALE'
      archived?: boolean | 'all'
      type?: 'boolean' | 'multivariant' | 'experiment' | 'remote_config'
      created_by_id?: string
      evaluation_runtime?: 'all' | 'client' | 'server'
      has_evaluation_contexts?: boolean
      has_evaluation_tags?: boolean
      tags?: string
      excluded_tags?: string
      excluded_properties?: string
      eligible_for_experiment?: boolean
    }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['FeatureFlag'][] }
  }
  'POST /api/projects/{project_id}/feature_flags/': {
    path: { project_id: string }
    query?: { skip_validation?: boolean }
    body: Schemas['NewFeatureFlag']
    answer: Schemas['WrittenFeatureFlag']
  }
  'GET /api/projects/{project_id}/feature_flags/{flag_id}/': {
    path: { project_id: string; flag_id: string }
    answer: Schemas['FeatureFlag']
  }
  'PATCH /api/projects/{project_id}/feature_flags/{flag_id}/': {
    path: { project_id: string; flag_id: string }
    query?: { skip_validation?: boolean }
    body: Schemas['FeatureFlagChange']
    answer: Schemas['WrittenFeatureFlag']
  }
  'DELETE /api/projects/{project_id}/feature_flags/{flag_id}/': {
    path: { project_id: string; flag_id: string }
    answer: null
  }
  'GET /api/projects/{project_id}/feature_flags/{flag_id}/status/': {
    path: { project_id: string; flag_id: string }
    answer: { status: 'ACTIVE' | 'STALE' | 'INACTIVE' | 'ARCHIVED' | 'DELETED'; reason: string }
  }
  'POST /api/projects/{project_id}/feature_flags/bulk_delete/': {
    path: { project_id: string }
    body: { ids: (number | string)[] }
    answer: {
      deleted: { id: number; key: string; rollout_state: string; active_variant: string | null }[]
      errors: {
        id: number | string
        key?: string
        reason: string
        used_by: { type: string; id: number | string; name: string | null }[]
      }[]
    }
  }
  'POST /api/projects/{project_id}/feature_flags/bulk_archive/': {
    path: { project_id: string }
    body: { ids: (number | string)[] }
    answer: {
      archived: { id: number; key: string }[]
      errors: {
        id: number | string
        key?: string
        reason: string
        used_by: { type: string; id: number | string; name: string | null }[]
      }[]
    }
  }
  'POST /api/projects/{project_id}/feature_flags/{flag_id}/enable/': {
    path: { project_id: string; flag_id: string }
    answer: Schemas['WrittenFeatureFlag']
  }
  'POST /api/projects/{project_id}/feature_flags/{flag_id}/disable/': {
    path: { project_id: string; flag_id: string }
    answer: Schemas['WrittenFeatureFlag']
  }
  'POST /api/projects/{project_id}/feature_flags/{flag_id}/archive/': {
    path: { project_id: string; flag_id: string }
    answer: Schemas['WrittenFeatureFlag']
  }
  'POST /api/projects/{project_id}/feature_flags/{flag_id}/unarchive/': {
    path: { project_id: string; flag_id: string }
    answer: Schemas['WrittenFeatureFlag']
  }
  'POST /api/projects/{project_id}/feature_flags/{flag_id}/set_release_condition_rollout/': {
    path: { project_id: string; flag_id: string }
    body: { condition_index: number; rollout_percentage: number; version: number }
    answer: Schemas['WrittenFeatureFlag']
  }
  'POST /api/projects/{project_id}/feature_flags/{flag_id}/roll_out_to_everyone/': {
    path: { project_id: string; flag_id: string }
    body: { version: number; variant_key?: string | null }
    answer: Schemas['WrittenFeatureFlag']
  }
  'GET /api/projects/{project_id}/feature_flags/{flag_id}/dependent_flags/': {
    path: { project_id: string; flag_id: string }
    answer: { id: number; key: string; name: string }[]
  }
  'POST /api/projects/{project_id}/feature_flags/bulk_keys/': {
    path: { project_id: string }
    body: { ids: (number | string)[] }
    answer: { keys: Record<string, unknown>; warning?: string }
  }
  'POST /api/projects/{project_id}/feature_flags/bulk_update_tags/': {
    path: { project_id: string }
    body: { ids: (number | string)[]; action: 'add' | 'remove' | 'set'; tags: string[] }
    answer: { updated: { id: number; tags: string[] }[]; skipped: { id: number | string; reason: string }[] }
  }
  'GET /api/projects/{project_id}/feature_flags/evaluation_reasons/': {
    path: { project_id: string }
    query?: { flag_keys?: string[]; groups?: string; distinct_id: string }
    answer: Record<string, unknown>
  }
  'GET /api/projects/{project_id}/feature_flags/my_flags/': {
    path: { project_id: string }
    query?: { flag_keys?: string[]; groups?: string }
    answer: { feature_flag: Schemas['FeatureFlag']; value: boolean | string }[]
  }
  'GET /api/projects/{project_id}/feature_flags/{flag_id}/versions/': {
    path: { project_id: string; flag_id: string }
    query?: { limit?: number; offset?: number }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['FeatureFlagVersion'][] }
  }
  'GET /api/projects/{project_id}/feature_flags/{flag_id}/versions/{version}/': {
    path: { project_id: string; flag_id: string; version: string }
    answer: Schemas['FeatureFlagVersion']
  }
  'GET /api/projects/{project_id}/feature_flags/{flag_id}/versions/{version}/diff/{other_version}/': {
    path: { project_id: string; flag_id: string; version: string; other_version: string }
    answer: Schemas['FeatureFlagDiff']
  }
  'POST /api/projects/{project_id}/feature_flags/{flag_id}/versions/{version}/restore/': {
    path: { project_id: string; flag_id: string; version: string }
    query?: { skip_validation?: boolean }
    answer: Schemas['WrittenFeatureFlag']
  }
  'GET /api/projects/{project_id}/feature_flags/activity/': {
    path: { project_id: string }
    query?: { limit?: number; offset?: number; page?: number }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['FeatureFlagActivity'][] }
  }
  'GET /api/projects/{project_id}/feature_flags/{flag_id}/activity/': {
    path: { project_id: string; flag_id: string }
    query?: { limit?: number; offset?: number; page?: number }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['FeatureFlagActivity'][] }
  }
  'POST /api/projects/{project_id}/feature_flags/{flag_id}/explain/': {
    path: { project_id: string; flag_id: string }
    body: {
      distinct_id?: unknown
      person_properties?: unknown
      groups?: unknown
      group_properties?: unknown
      $device_id?: unknown
      $anon_distinct_id?: unknown
      evaluation_runtime?: unknown
      evaluation_contexts?: unknown
      only_use_override_person_properties?: boolean | null
      ip?: string | null
      at?: string | null
      $distinct_id?: unknown
      $properties?: unknown
      $groups?: unknown
      device_id?: unknown
      anon_distinct_id?: unknown
      evaluation_environments?: unknown
      flag_keys?: unknown
      flag_keys_to_evaluate?: unknown
      token?: unknown
      api_key?: unknown
      timezone?: unknown
      geoip_disable?: unknown
    }
    answer: Schemas['Explanation']
  }
  'POST /api/projects/{project_id}/feature_flags/{flag_id}/test_evaluation/': {
    path: { project_id: string; flag_id: string }
    body: {
      distinct_id?: string
      person_id?: string
      groups?: Record<string, unknown> | null
      person_properties?: Record<string, unknown> | null
      group_properties?: Record<string, unknown> | null
      timestamp?: string | null
    }
    answer: {
      flag_key: string
      result: boolean | string | null
      reason: string
      condition_index: number | null
      payload: string | null
      person_properties: Record<string, unknown>
      evaluation_distinct_id: string
      conditions: {
        index: number
        matched: boolean
        properties_matched?: boolean
        explanation: string
        rollout_percentage: number
        rollout_excluded: boolean
        variant: string | null
        properties: {
          key: string
          operator: string
          value: unknown
          type: string
          actual_value: unknown
          matched: boolean
          explanation: string
        }[]
      }[]
    }
  }
  'POST /api/projects/{project_id}/feature_flags/user_blast_radius/': {
    path: { project_id: string }
    body: { condition: Record<string, unknown>; group_type_index?: number | null }
    answer: { affected: number; total: number; users_affected: number; total_users: number }
  }
  'POST /api/projects/{project_id}/feature_flags/reach/': {
    path: { project_id: string }
    query?: { skip_validation?: boolean }
    body: {
      definition: {
        id?: number
        key?: string
        name?: string | null
        description?: string | null
        filters?: Schemas['FlagFilters']
        active?: boolean
        archived?: boolean | null
        deleted?: boolean
        ensure_experience_continuity?: boolean | null
        bucketing_identifier?: string | null
        evaluation_runtime?: string | null
        evaluation_contexts?: string[] | null
        evaluation_tags?: string[] | null
        has_encrypted_payloads?: boolean | null
        is_remote_configuration?: boolean | null
        tags?: string[] | null
        rollout_percentage?: unknown
      }
      base?: number | null
    }
    answer: null
  }
  'GET /api/projects/{project_id}/feature_flags/{flag_id}/usage/': {
    path: { project_id: string; flag_id: string }
    query?: { date_from?: string; date_to?: string; interval?: 'hour' | 'day' }
    answer: {
      last_called_at: string | null
      results: { value: string; calls: number[]; persons: number[]; buckets: string[] }[]
    }
  }
  'GET /api/projects/{project_id}/feature_flags/{flag_id}/exposure/': {
    path: { project_id: string; flag_id: string }
    query?: { date_from?: string; date_to?: string; interval?: 'hour' | 'day' }
    answer: {
      variants: { variant: string; persons: number; expected_share: number | null }[]
      multiple: number
      buckets: string[]
      cumulative: Record<string, unknown>
      srm: { chi_square: number; degrees_of_freedom: number; p_value: number } | null
    }
  }
  'POST /api/organizations/@current/feature_flags/copy_flags/': {
    body: {
      feature_flag_key: string
      from_project: number
      target_project_ids: number[]
      disable_copied_flag?: boolean
      copy_schedule?: boolean
      copy_dependencies?: boolean
    }
    answer: {
      success: {
        id: number
        key: string
        name: string
        filters: Schemas['FlagFilters']
        active: boolean
        archived: boolean
        deleted: boolean
        version: number
        ensure_experience_continuity: boolean
        bucketing_identifier: string | null
        evaluation_runtime: string
        evaluation_contexts: string[]
        has_encrypted_payloads: boolean
        is_remote_configuration: boolean
        tags: string[]
        created_at: string
        updated_at: string
        created_by: Schemas['Author'] | null
        experiment_set: number[]
        features: Record<string, unknown>[]
        last_called_at: string | null
        status: 'ACTIVE' | 'STALE' | 'INACTIVE' | 'ARCHIVED' | 'DELETED'
        project_id: number
        notes: string[]
      }[]
      failed: { project_id: number; errors: string[] }[]
    }
  }
  'PATCH /api/projects/{project_id}/cohorts/{cohort_id}/add_persons_to_static_cohort/': {
    path: { project_id: string; cohort_id: string }
    body: { person_ids?: (number | string)[]; distinct_ids?: string[] }
    answer: Schemas['WrittenCohort']
  }
  'PATCH /api/projects/{project_id}/cohorts/{cohort_id}/remove_person_from_static_cohort/': {
    path: { project_id: string; cohort_id: string }
    body: { person_id?: number | string; person_ids?: (number | string)[]; distinct_ids?: string[] }
    answer: Schemas['WrittenCohort']
  }
  'GET /api/projects/{project_id}/cohorts/{cohort_id}/persons/': {
    path: { project_id: string; cohort_id: string }
    query?: { limit?: number; cursor?: number; offset?: string; search?: string }
    answer: { next: string | null; previous: string | null; results: Schemas['Person'][] }
  }
  'POST /api/projects/{project_id}/cohorts/{cohort_id}/recount/': {
    path: { project_id: string; cohort_id: string }
    answer: Schemas['Cohort']
  }
  'GET /api/projects/{project_id}/persons/cohorts/': {
    path: { project_id: string }
    query?: { person_id: string }
    answer: { results: Schemas['Cohort'][] }
  }
  'GET /api/projects/{project_id}/cohorts/': {
    path: { project_id: string }
    query?: { limit?: number; offset?: number; search?: string; hide_behavioral_cohorts?: boolean }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['Cohort'][] }
  }
  'POST /api/projects/{project_id}/cohorts/': {
    path: { project_id: string }
    query?: { skip_validation?: boolean }
    body: Schemas['NewCohort']
    answer: Schemas['WrittenCohort']
  }
  'GET /api/projects/{project_id}/cohorts/{cohort_id}/': {
    path: { project_id: string; cohort_id: string }
    answer: Schemas['Cohort']
  }
  'PATCH /api/projects/{project_id}/cohorts/{cohort_id}/': {
    path: { project_id: string; cohort_id: string }
    query?: { skip_validation?: boolean }
    body: Schemas['CohortChange']
    answer: Schemas['WrittenCohort']
  }
  'DELETE /api/projects/{project_id}/cohorts/{cohort_id}/': {
    path: { project_id: string; cohort_id: string }
    query?: { skip_validation?: boolean }
    answer: null
  }
  'GET /api/projects/{project_id}/early_access_feature/': {
    path: { project_id: string }
    query?: { limit?: number; offset?: number }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['EarlyAccessFeature'][] }
  }
  'POST /api/projects/{project_id}/early_access_feature/': {
    path: { project_id: string }
    body: Schemas['NewEarlyAccessFeature']
    answer: Schemas['EarlyAccessFeature']
  }
  'GET /api/projects/{project_id}/early_access_feature/{feature_id}/': {
    path: { project_id: string; feature_id: string }
    answer: Schemas['EarlyAccessFeature']
  }
  'PATCH /api/projects/{project_id}/early_access_feature/{feature_id}/': {
    path: { project_id: string; feature_id: string }
    body: Schemas['EarlyAccessFeatureChange']
    answer: Schemas['EarlyAccessFeature']
  }
  'DELETE /api/projects/{project_id}/early_access_feature/{feature_id}/': {
    path: { project_id: string; feature_id: string }
    answer: null
  }
  'GET /api/projects/{project_id}/surveys/stats/': {
    path: { project_id: string }
    query?: { date_from?: string; date_to?: string }
    answer: Schemas['SurveysStats']
  }
  'GET /api/projects/{project_id}/surveys/{survey_id}/stats/': {
    path: { project_id: string; survey_id: string }
    query?: { date_from?: string; date_to?: string; survey_id?: string }
    answer: Schemas['SurveyStats']
  }
  'GET /api/projects/{project_id}/surveys/': {
    path: { project_id: string }
    query?: {
      limit?: number
      offset?: number
      search?: string
      archived?: boolean
      status?: 'draft' | 'running' | 'complete'
      type?: 'popover' | 'widget' | 'api' | 'external_survey'
      ids?: string
      created_by?: string
    }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['Survey'][] }
  }
  'POST /api/projects/{project_id}/surveys/': {
    path: { project_id: string }
    body: Schemas['NewSurvey']
    answer: Schemas['Survey']
  }
  'GET /api/projects/{project_id}/surveys/{survey_id}/': {
    path: { project_id: string; survey_id: string }
    answer: Schemas['Survey']
  }
  'PATCH /api/projects/{project_id}/surveys/{survey_id}/': {
    path: { project_id: string; survey_id: string }
    body: Schemas['SurveyChange']
    answer: Schemas['Survey']
  }
  'PUT /api/projects/{project_id}/surveys/{survey_id}/': {
    path: { project_id: string; survey_id: string }
    body: Schemas['NewSurvey']
    answer: Schemas['Survey']
  }
  'DELETE /api/projects/{project_id}/surveys/{survey_id}/': {
    path: { project_id: string; survey_id: string }
    answer: null
  }
  'POST /api/projects/{project_id}/surveys/{survey_id}/launch/': {
    path: { project_id: string; survey_id: string }
    body: Record<string, unknown>
    answer: Schemas['Survey']
  }
  'POST /api/projects/{project_id}/surveys/{survey_id}/stop/': {
    path: { project_id: string; survey_id: string }
    body: Record<string, unknown>
    answer: Schemas['Survey']
  }
  'GET /api/projects/{project_id}/experiments/': {
    path: { project_id: string }
    query?: {
      limit?: number
      offset?: number
      search?: string
      status?: 'all' | 'complete' | 'draft' | 'running' | 'paused' | 'stopped'
      archived?: boolean
      feature_flag_id?: number
      created_by_id?: string
      order?:
        | 'name'
        | '-name'
        | 'created_at'
        | '-created_at'
        | 'updated_at'
        | '-updated_at'
        | 'start_date'
        | '-start_date'
        | 'end_date'
        | '-end_date'
        | 'duration'
        | '-duration'
        | 'status'
        | '-status'
      event?: string
      prompt_name?: string
      tags?: string
      excluded_tags?: string
    }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['Experiment'][] }
  }
  'POST /api/projects/{project_id}/experiments/': {
    path: { project_id: string }
    body: Schemas['NewExperiment']
    answer: Schemas['Experiment']
  }
  'GET /api/projects/{project_id}/experiments/{experiment_id}/': {
    path: { project_id: string; experiment_id: string }
    answer: Schemas['Experiment']
  }
  'PATCH /api/projects/{project_id}/experiments/{experiment_id}/': {
    path: { project_id: string; experiment_id: string }
    body: Schemas['ExperimentChange']
    answer: Schemas['Experiment']
  }
  'DELETE /api/projects/{project_id}/experiments/{experiment_id}/': {
    path: { project_id: string; experiment_id: string }
    answer: null
  }
  'POST /api/projects/{project_id}/experiments/{experiment_id}/launch/': {
    path: { project_id: string; experiment_id: string }
    body: Record<string, unknown>
    answer: Schemas['Experiment']
  }
  'POST /api/projects/{project_id}/experiments/{experiment_id}/end/': {
    path: { project_id: string; experiment_id: string }
    body: { conclusion?: string | null; conclusion_comment?: string | null; open_cleanup_pr?: false; repository?: null }
    answer: Schemas['Experiment']
  }
  'POST /api/projects/{project_id}/experiments/{experiment_id}/pause/': {
    path: { project_id: string; experiment_id: string }
    body: Record<string, unknown>
    answer: Schemas['Experiment']
  }
  'POST /api/projects/{project_id}/experiments/{experiment_id}/resume/': {
    path: { project_id: string; experiment_id: string }
    body: Record<string, unknown>
    answer: Schemas['Experiment']
  }
  'POST /api/projects/{project_id}/experiments/{experiment_id}/archive/': {
    path: { project_id: string; experiment_id: string }
    body: { disable_feature_flag?: boolean }
    answer: Schemas['Experiment']
  }
  'POST /api/projects/{project_id}/experiments/{experiment_id}/unarchive/': {
    path: { project_id: string; experiment_id: string }
    body: Record<string, unknown>
    answer: Schemas['Experiment']
  }
  'POST /api/projects/{project_id}/experiments/{experiment_id}/reset/': {
    path: { project_id: string; experiment_id: string }
    body: Record<string, unknown>
    answer: Schemas['Experiment']
  }
  'POST /api/projects/{project_id}/experiments/{experiment_id}/ship_variant/': {
    path: { project_id: string; experiment_id: string }
    body: {
      conclusion?: string | null
      conclusion_comment?: string | null
      open_cleanup_pr?: false
      repository?: null
      variant_key: string
      release_to_everyone?: boolean
    }
    answer: Schemas['Experiment']
  }
  'POST /api/projects/{project_id}/experiments/{experiment_id}/duplicate/': {
    path: { project_id: string; experiment_id: string }
    body: { name?: string; feature_flag_key?: string }
    answer: Schemas['Experiment']
  }
  'POST /api/projects/{project_id}/persons/bulk_delete/': {
    path: { project_id: string }
    body: {
      ids?: string[]
      distinct_ids?: string[]
      delete_events?: boolean
      delete_recordings?: boolean
      keep_person?: boolean
    }
    answer: {
      persons_found: number
      persons_deleted: number
      events_queued_for_deletion: boolean
      recordings_queued_for_deletion: boolean
      deletion_errors: Record<string, unknown>[]
    }
  }
  'GET /api/projects/{project_id}/persons/deletion_status/': {
    path: { project_id: string }
    query?: { limit?: number; offset?: number; person_uuid?: string; status?: 'pending' | 'completed' | 'all' }
    answer: {
      count: number
      next: string | null
      previous: string | null
      results: {
        person_uuid: string
        created_at: string
        created_by: Schemas['Author'] | null
        status: 'pending' | 'completed'
        delete_verified_at: string | null
        erasure: {
          id: number
          persons: number
          keep_person: boolean
          delete_events: boolean
          delete_recordings: boolean
          removed: { events: number; pending_events: number; recordings: number; rejected_events: number } | null
        }
      }[]
    }
  }
  'DELETE /api/projects/{project_id}/persons/{uuid}/': {
    path: { project_id: string; uuid: string }
    query?: { delete_events?: boolean; delete_recordings?: boolean; keep_person?: boolean }
    answer: null
  }
  'GET /api/projects/{project_id}/persons/{uuid}/': {
    path: { project_id: string; uuid: string }
    query?: { import_job?: number }
    answer: Schemas['Person']
  }
  'POST /api/projects/{project_id}/persons/{uuid}/split/': {
    path: { project_id: string; uuid: string }
    body: { main_distinct_id?: string }
    answer: { success: true }
  }
  'POST /api/projects/{project_id}/person_rebuilds/': {
    path: { project_id: string }
    body: { uuids?: string[]; distinct_ids?: string[]; all?: boolean; apply?: boolean }
    answer: {
      id: number
      status: 'pending' | 'completed'
      apply: boolean
      created_at: string
      created_by: Schemas['Author'] | null
      completed_at: string | null
      report: {
        distinct_ids: number
        changed: number
        created: number
        removed: number
        moved_distinct_ids: number
        unreadable_distinct_ids: number
        persons: { uuid: string; change: 'changed' | 'created' | 'removed'; keys: string[]; distinct_ids: string[] }[]
      } | null
    }
  }
  'GET /api/projects/{project_id}/person_rebuilds/{rebuild_id}/': {
    path: { project_id: string; rebuild_id: string }
    answer: {
      id: number
      status: 'pending' | 'completed'
      apply: boolean
      created_at: string
      created_by: Schemas['Author'] | null
      completed_at: string | null
      report: {
        distinct_ids: number
        changed: number
        created: number
        removed: number
        moved_distinct_ids: number
        unreadable_distinct_ids: number
        persons: { uuid: string; change: 'changed' | 'created' | 'removed'; keys: string[]; distinct_ids: string[] }[]
      } | null
    }
  }
  'GET /api/projects/{project_id}/persons/': {
    path: { project_id: string }
    query?: {
      limit?: number
      offset?: number
      cursor?: number
      distinct_id?: string
      uuid?: string
      search?: string
      email?: string
      cohort?: number
      properties?: string
      import_job?: number
    }
    answer: { next: string | null; previous: string | null; results: Schemas['Person'][] }
  }
  'GET /api/projects/{project_id}/persons/{uuid}/distinct_ids/': {
    path: { project_id: string; uuid: string }
    query?: { limit?: number; cursor?: string; offset?: string }
    answer: { count: number; next: string | null; previous: null; results: { distinct_id: string; version: number }[] }
  }
  'GET /api/projects/{project_id}/persons/values/': {
    path: { project_id: string }
    query?: { key: string; value?: string }
    answer: { results: { name: unknown; count: number }[]; refreshing: false; value_count: number; is_sample: boolean }
  }
  'GET /api/projects/{project_id}/persons/export/': {
    path: { project_id: string }
    query?: {
      distinct_id?: string
      uuid?: string
      search?: string
      email?: string
      cohort?: number
      properties?: string
      cursor?: number
      format?: 'jsonl' | 'csv' | 'parquet'
      limit?: number
      offset?: string
    }
    answer: null
  }
  'GET /api/projects/{project_id}/groups_types/': { path: { project_id: string }; answer: Schemas['GroupType'][] }
  'DELETE /api/projects/{project_id}/groups_types/{group_type_index}/': {
    path: { project_id: string; group_type_index: string }
    answer: null
  }
  'GET /api/projects/{project_id}/groups/': {
    path: { project_id: string }
    query?: { limit?: number; offset?: number; group_type_index: number; search?: string; group_key?: string }
    answer: { next: string | null; previous: string | null; results: Schemas['Group'][] }
  }
  'GET /api/projects/{project_id}/groups/find/': {
    path: { project_id: string }
    query?: { group_type_index: number; group_key: string }
    answer: Schemas['Group']
  }
  'GET /api/projects/{project_id}/events/': {
    path: { project_id: string }
    query?: {
      event?: string
      distinct_id?: string
      person_id?: string
      uuid?: string
      after?: string
      before?: string
      properties?: string
      orderBy?: string
      cursor?: string
      import_job?: number
      limit?: number
      offset?: string
      page?: string
    }
    answer: { next: string | null; results: Schemas['Event'][] }
  }
  'GET /api/projects/{project_id}/events/{uuid}/': {
    path: { project_id: string; uuid: string }
    query?: { import_job?: number }
    answer: Schemas['Event']
  }
  'GET /api/projects/{project_id}/events/export/': {
    path: { project_id: string }
    query?: {
      event?: string
      distinct_id?: string
      person_id?: string
      uuid?: string
      after?: string
      before?: string
      properties?: string
      orderBy?: string
      cursor?: string
      format?: 'jsonl' | 'csv' | 'parquet'
      limit?: number
      offset?: string
    }
    answer: null
  }
  'GET /api/projects/{project_id}/import_jobs/': {
    path: { project_id: string }
    query?: { limit?: number; offset?: number }
    answer: {
      count: number
      next: string | null
      previous: string | null
      results: {
        id: number | null
        number: number
        project: number
        name: string
        source: string
        state:
          | 'planned'
          | 'rehearsed'
          | 'approved'
          | 'sending'
          | 'verifying'
          | 'pending'
          | 'publishing'
          | 'published'
          | 'discarding'
          | 'discarded'
          | 'failed'
        day: string | null
        options: {
          person_properties?: 'keep' | 'overwrite'
          first_touch_backdate?: boolean
          experiments?: boolean
          geoip?: boolean
        }
        step: string | null
        plan: Record<string, unknown>
        progress: Record<string, unknown>
        created_by: string | null
        created_at: string
        updated_at: string
        published_at: string | null
        discarded_at: string | null
        failure: { code: string; message: string; since: string } | null
      }[]
    }
  }
  'POST /api/projects/{project_id}/import_jobs/': {
    path: { project_id: string }
    body: {
      name?: string
      source: string
      options?: {
        person_properties?: 'keep' | 'overwrite'
        first_touch_backdate?: boolean
        experiments?: boolean
        geoip?: boolean
      }
      replay_side_effects?: string[]
      accept_old?: boolean
      plan?: Record<string, unknown>
    }
    answer: {
      id: number | null
      number: number
      project: number
      name: string
      source: string
      state:
        | 'planned'
        | 'rehearsed'
        | 'approved'
        | 'sending'
        | 'verifying'
        | 'pending'
        | 'publishing'
        | 'published'
        | 'discarding'
        | 'discarded'
        | 'failed'
      day: string | null
      options: {
        person_properties?: 'keep' | 'overwrite'
        first_touch_backdate?: boolean
        experiments?: boolean
        geoip?: boolean
      }
      step: string | null
      plan: Record<string, unknown>
      progress: Record<string, unknown>
      created_by: string | null
      created_at: string
      updated_at: string
      published_at: string | null
      discarded_at: string | null
      failure: { code: string; message: string; since: string } | null
    }
  }
  'GET /api/projects/{project_id}/import_jobs/{job_id}/': {
    path: { project_id: string; job_id: string }
    answer: {
      id: number | null
      number: number
      project: number
      name: string
      source: string
      state:
        | 'planned'
        | 'rehearsed'
        | 'approved'
        | 'sending'
        | 'verifying'
        | 'pending'
        | 'publishing'
        | 'published'
        | 'discarding'
        | 'discarded'
        | 'failed'
      day: string | null
      options: {
        person_properties?: 'keep' | 'overwrite'
        first_touch_backdate?: boolean
        experiments?: boolean
        geoip?: boolean
      }
      step: string | null
      plan: Record<string, unknown>
      progress: Record<string, unknown>
      created_by: string | null
      created_at: string
      updated_at: string
      published_at: string | null
      discarded_at: string | null
      failure: { code: string; message: string; since: string } | null
    }
  }
  'PATCH /api/projects/{project_id}/import_jobs/{job_id}/': {
    path: { project_id: string; job_id: string }
    body: {
      name?: string
      state?: 'planned' | 'rehearsed' | 'approved' | 'sending' | 'verifying' | 'pending' | 'failed'
      plan?: Record<string, unknown>
      progress?: Record<string, unknown>
    }
    answer: {
      id: number | null
      number: number
      project: number
      name: string
      source: string
      state:
        | 'planned'
        | 'rehearsed'
        | 'approved'
        | 'sending'
        | 'verifying'
        | 'pending'
        | 'publishing'
        | 'published'
        | 'discarding'
        | 'discarded'
        | 'failed'
      day: string | null
      options: {
        person_properties?: 'keep' | 'overwrite'
        first_touch_backdate?: boolean
        experiments?: boolean
        geoip?: boolean
      }
      step: string | null
      plan: Record<string, unknown>
      progress: Record<string, unknown>
      created_by: string | null
      created_at: string
      updated_at: string
      published_at: string | null
      discarded_at: string | null
      failure: { code: string; message: string; since: string } | null
    }
  }
  'POST /api/projects/{project_id}/import_jobs/{job_id}/publish/': {
    path: { project_id: string; job_id: string }
    answer: {
      id: number | null
      number: number
      project: number
      name: string
      source: string
      state:
        | 'planned'
        | 'rehearsed'
        | 'approved'
        | 'sending'
        | 'verifying'
        | 'pending'
        | 'publishing'
        | 'published'
        | 'discarding'
        | 'discarded'
        | 'failed'
      day: string | null
      options: {
        person_properties?: 'keep' | 'overwrite'
        first_touch_backdate?: boolean
        experiments?: boolean
        geoip?: boolean
      }
      step: string | null
      plan: Record<string, unknown>
      progress: Record<string, unknown>
      created_by: string | null
      created_at: string
      updated_at: string
      published_at: string | null
      discarded_at: string | null
      failure: { code: string; message: string; since: string } | null
    }
  }
  'POST /api/projects/{project_id}/import_jobs/{job_id}/discard/': {
    path: { project_id: string; job_id: string }
    answer: {
      id: number | null
      number: number
      project: number
      name: string
      source: string
      state:
        | 'planned'
        | 'rehearsed'
        | 'approved'
        | 'sending'
        | 'verifying'
        | 'pending'
        | 'publishing'
        | 'published'
        | 'discarding'
        | 'discarded'
        | 'failed'
      day: string | null
      options: {
        person_properties?: 'keep' | 'overwrite'
        first_touch_backdate?: boolean
        experiments?: boolean
        geoip?: boolean
      }
      step: string | null
      plan: Record<string, unknown>
      progress: Record<string, unknown>
      created_by: string | null
      created_at: string
      updated_at: string
      published_at: string | null
      discarded_at: string | null
      failure: { code: string; message: string; since: string } | null
    }
  }
  'GET /api/projects/{project_id}/import_jobs/{job_id}/report/': {
    path: { project_id: string; job_id: string }
    answer: {
      job: {
        id: number | null
        number: number
        project: number
        name: string
        source: string
        state:
          | 'planned'
          | 'rehearsed'
          | 'approved'
          | 'sending'
          | 'verifying'
          | 'pending'
          | 'publishing'
          | 'published'
          | 'discarding'
          | 'discarded'
          | 'failed'
        day: string | null
        options: {
          person_properties?: 'keep' | 'overwrite'
          first_touch_backdate?: boolean
          experiments?: boolean
          geoip?: boolean
        }
        step: string | null
        plan: Record<string, unknown>
        progress: Record<string, unknown>
        created_by: string | null
        created_at: string
        updated_at: string
        published_at: string | null
        discarded_at: string | null
        failure: { code: string; message: string; since: string } | null
      }
      rows: number
      accepted: number | null
      counts: { day: string; event: string; uuids: number }[]
      counts_next: string | null
      id_buckets: number[]
      notes: { reason: string; count: number; samples: Record<string, unknown>[] }[]
    }
  }
  'GET /api/projects/{project_id}/import_jobs/{job_id}/counts/': {
    path: { project_id: string; job_id: string }
    query?: { cursor?: string }
    answer: { next: string | null; results: { day: string; event: string; uuids: number }[] }
  }
  'GET /api/projects/{project_id}/import_jobs/{job_id}/events/': {
    path: { project_id: string; job_id: string }
    query?: { uuids: string }
    answer: { results: Schemas['Event'][] }
  }
  'GET /api/projects/{project_id}/event_definitions/': {
    path: { project_id: string }
    query?: {
      limit?: number
      offset?: number
      search?: string
      ordering?: 'name' | '-name' | 'last_seen_at' | '-last_seen_at' | 'created_at' | '-created_at'
      event_type?: 'all' | 'event'
      exclude_hidden?: boolean
      exclude_stale?: boolean
    }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['EventDefinition'][] }
  }
  'GET /api/projects/{project_id}/property_definitions/': {
    path: { project_id: string }
    query?: {
      limit?: number
      offset?: number
      search?: string
      type?: 'event' | 'person'
      event_names?: string
      filter_by_event_names?: boolean
      properties?: string
      is_feature_flag?: boolean
      exclude_core_properties?: boolean
      excluded_properties?: string
      exclude_hidden?: boolean
    }
    answer: { count: number; next: string | null; previous: string | null; results: Schemas['PropertyDefinition'][] }
  }
  'POST /api/projects/{project_id}/query/': {
    path: { project_id: string }
    query?: { refresh?: string; async?: string; import_job?: number }
    body: { query: Record<string, unknown> }
    answer:
      | {
          results: {
            label: string
            count: number
            data: number[]
            days: string[]
            labels: string[]
            breakdown_value?: unknown
            compare?: true
            compare_label?: 'current' | 'previous'
            action: unknown
          }[]
          timezone: string
          is_cached: false
          complete: boolean
        }
      | {
          columns: string[]
          types: string[][]
          results: unknown[][]
          hasMore: boolean
          limit: number
          offset: 0
          error: null
          complete: boolean
        }
  }
  'POST /api/projects/{project_id}/mcp_tools/execute_sql/': {
    path: { project_id: string }
    body: { args: { query: string; truncate?: boolean; connectionId?: string | null; sendRawQuery?: boolean | null } }
    answer: { success: true; content: string; structured_content?: Record<string, unknown> }
  }
  'POST /api/projects/{project_id}/mcp_tools/read_taxonomy/': {
    path: { project_id: string }
    body: { args: { query: Record<string, unknown> } }
    answer: { success: true; content: string; structured_content?: Record<string, unknown> }
  }
  'GET /api/projects/{project_id}/rejected_events/': {
    path: { project_id: string }
    query?: {
      reason?: string
      field?: string
      event?: string
      distinct_id?: string
      uuid?: string
      id?: string
      lane?: 'main' | 'historical' | 'overflow' | 'error_tracking' | 'heatmaps' | 'warnings' | 'ai' | 'replay'
      search?: string
      after?: string
      before?: string
      replayed?: boolean
      limit?: number
      offset?: string
      page?: string
      cursor?: string
    }
    answer: { next: string | null; previous: string | null; results: Schemas['RejectedEvent'][] }
  }
  'GET /api/projects/{project_id}/rejected_events/{reject_id}/': {
    path: { project_id: string; reject_id: string }
    answer: Schemas['RejectedEvent']
  }
  'POST /api/projects/{project_id}/rejected_events/replay/': {
    path: { project_id: string }
    body: Schemas['RejectReplay']
    answer: Schemas['RejectReplayReport']
  }
  'GET /api/projects/{project_id}/replay_messages/': {
    path: { project_id: string }
    query?: {
      session_id?: string
      distinct_id?: string
      after?: string
      before?: string
      limit?: number
      offset?: string
      page?: string
      cursor?: string
    }
    answer: { next: string | null; results: Schemas['ReplayMessage'][] }
  }
  'GET /api/projects/{project_id}/replay_messages/{uuid}/': {
    path: { project_id: string; uuid: string }
    answer: {
      id: string
      session_id: string
      window_id: string
      distinct_id: string
      snapshot_source: 'web' | 'mobile'
      lib: string
      items: number
      bytes: number
      timestamp: string
      received_at: string
      snapshot_items: unknown[] | null
    }
  }
  'GET /api/projects/{project_id}/events/live/': {
    path: { project_id: string }
    query?: {
      event?: string[]
      distinct_id?: string[]
      lane?: string[]
      historical?: boolean
      properties?: string
      rejected?: boolean
    }
    answer: null
  }
  'GET /api/projects/{project_id}/ingestion_status/': {
    path: { project_id: string }
    answer: Schemas['IngestionStatus']
  }
  'GET /api/instance/lost_records/': {
    query?: { limit?: number; offset?: number }
    answer: {
      count: number
      next: string | null
      previous: string | null
      results: {
        lane: string
        from_offset: number
        to_offset: number
        record_count: number
        file: string | null
        noticed_at: string
        body: string | null
      }[]
    }
  }
  'GET /api/projects/{project_id}/usage/': {
    path: { project_id: string }
    query?: { date_from?: string; date_to?: string }
    answer: Schemas['Usage']
  }
  'GET /api/projects/{project_id}/ingestion_warnings/': {
    path: { project_id: string }
    answer: Schemas['IngestionWarnings']
  }
}

export interface Schemas {
  Activity: {
    id: string
    user: Schemas['Author'] | null
    activity: string
    scope: string
    item_id: string
    project_id: number | null
    detail: {
      name: string
      version?: number
      changes: {
        path: string
        action: 'created' | 'changed' | 'deleted'
        before: unknown
        after: unknown
        type: string
        field: string
      }[]
    }
    created_at: string
  }
  Author: { id: number; uuid: string; distinct_id: string; first_name: string; last_name: string; email: string }
  Cohort: {
    id: number
    name: string
    description: string
    is_static: boolean
    filters: Schemas['CohortFilters']
    deleted: boolean
    version: number
    count: number | null
    last_calculation: string | null
    created_at: string
    updated_at: string
    created_by: Schemas['Author'] | null
    groups: unknown[]
    is_calculating: boolean
    errors_calculating: number
    experiment_set: number[]
  }
  CohortChange: {
    name?: string | null
    description?: string | null
    is_static?: boolean
    filters?: Schemas['CohortFilters'] | null
    deleted?: boolean
    _create_static_person_ids?: (number | string)[]
    distinct_ids?: string[]
    csv?: string
    version?: number | null
  }
  CohortFilter: {
    key: string
    value?: unknown
    operator?:
      | 'exact'
      | 'is_not'
      | 'is_set'
      | 'is_not_set'
      | 'icontains'
      | 'not_icontains'
      | 'starts_with'
      | 'not_starts_with'
      | 'ends_with'
      | 'not_ends_with'
      | 'icontains_multi'
      | 'not_icontains_multi'
      | 'regex'
      | 'not_regex'
      | 'gt'
      | 'gte'
      | 'lt'
      | 'lte'
      | 'between'
      | 'not_between'
      | 'is_date_exact'
      | 'is_date_before'
      | 'is_date_after'
      | 'semver_eq'
      | 'semver_neq'
      | 'semver_gt'
      | 'semver_gte'
      | 'semver_lt'
      | 'semver_lte'
      | 'semver_tilde'
      | 'semver_caret'
      | 'semver_wildcard'
      | 'in'
      | 'not_in'
      | 'flag_evaluates_to'
      | null
    group_type_index?: number | null
    type: 'person' | 'person_metadata' | 'cohort' | 'flag'
    negation?: boolean | null
  }
  CohortFilterGroup: { type: 'OR' | 'AND'; values: (Schemas['CohortFilterGroup'] | Schemas['CohortFilter'])[] }
  CohortFilters: { properties?: Schemas['CohortFilterGroup'] }
  ConditionSet: {
    properties?: Schemas['PropertyFilter'][] | null
    rollout_percentage?: number | null
    variant?: string | null
    description?: string | null
    aggregation_group_type_index?: number | null
  }
  CreatedPersonalApiKey: {
    id: string
    label: string
    scopes: string[]
    scoped_teams: number[]
    created_at: string
    last_used_at: string | null
    scoped_organizations: string[]
    value: string
  }
  EarlyAccessFeature: {
    id: string
    name: string
    description: string
    stage: 'draft' | 'concept' | 'alpha' | 'beta' | 'general-availability' | 'archived'
    documentation_url: string
    payload: Record<string, unknown>
    created_at: string
    created_by: Schemas['Author'] | null
    feature_flag: Schemas['LinkedFeatureFlag'] | null
  }
  EarlyAccessFeatureChange: {
    name?: string
    description?: string
    stage?: 'draft' | 'concept' | 'alpha' | 'beta' | 'general-availability' | 'archived'
    documentation_url?: string
    payload?: Record<string, unknown>
    feature_flag_id?: number | null
  }
  Error: {
    type: string
    code: string
    detail: string
    attr: string | null
    hint?: string
    extra?: Record<string, unknown>
  }
  Event: {
    id: string
    uuid: string
    event: string
    distinct_id: string
    timestamp: string
    elements: {
      order: number
      tag_name: string | null
      text: string | null
      href: string | null
      attr_id: string | null
      attr_class: string[] | null
      nth_child: number | null
      nth_of_type: number | null
      attributes: Record<string, unknown>
    }[]
    elements_chain: string
    person_id: string
    person_mode: 'full' | 'propertyless' | 'force_upgrade'
    person_created_at: string | null
    lane: string
    historical_migration: boolean
    import_job_id: number
    captured_at: string
    created_at: string
    properties: Record<string, unknown>
    person_properties: Record<string, unknown>
    person: { uuid: string; created_at: string | null; distinct_ids: string[]; properties: Record<string, unknown> }
  }
  EventDefinition: {
    id: string
    name: string
    created_at: string
    last_seen_at: string
    is_action: boolean
    description: string | null
    owner: null
    tags: string[]
    updated_at: string | null
    updated_by: null
    verified: boolean
    verified_at: null
    verified_by: null
    hidden: boolean
  }
  Experiment: {
    id: number
    name: string
    description: string | null
    type: string | null
    parameters: Schemas['ExperimentParameters'] | null
    metrics: unknown[] | null
    metrics_secondary: unknown[] | null
    secondary_metrics: unknown[] | null
    saved_metrics_ids: unknown[] | null
    filters: Record<string, unknown> | null
    exposure_criteria: Record<string, unknown> | null
    stats_config: Record<string, unknown> | null
    conclusion: string | null
    conclusion_comment: string | null
    start_date: string | null
    end_date: string | null
    archived: boolean
    created_at: string
    updated_at: string
    created_by: Schemas['Author'] | null
    feature_flag_key: string | null
    feature_flag: Schemas['LinkedFeatureFlag'] | null
    status: 'draft' | 'running' | 'paused' | 'stopped'
    deleted: boolean
  }
  ExperimentChange: {
    name?: string
    description?: string | null
    type?: string | null
    parameters?: Schemas['ExperimentParameters'] | null
    metrics?: unknown[] | null
    metrics_secondary?: unknown[] | null
    secondary_metrics?: unknown[] | null
    saved_metrics_ids?: unknown[] | null
    filters?: Record<string, unknown> | null
    exposure_criteria?: Record<string, unknown> | null
    stats_config?: Record<string, unknown> | null
    conclusion?: string | null
    conclusion_comment?: string | null
    start_date?: string | null
    end_date?: string | null
    archived?: boolean
    feature_flag?: {
      id?: number
      key?: string
      name?: string
      filters?: Record<string, unknown> | null
      active?: boolean
      deleted?: boolean
      ensure_experience_continuity?: boolean | null
      version?: number
    } | null
    update_feature_flag_params?: boolean
    allow_unknown_events?: boolean
    feature_flag_key?: string | null
    deleted?: boolean
  }
  ExperimentParameters: { feature_flag_variants?: Schemas['FlagVariant'][] }
  Explanation: {
    flag: { id: number; key: string; version: number; active: boolean }
    left_out: 'deleted' | 'inactive' | 'encrypted_payloads' | 'unreadable' | 'dependency_cycle' | 'filtered_out' | null
    value: unknown
    payload: string | null
    failed: boolean
    reason: { code: string; condition_index: number | null; description: string } | null
    evaluated_at: string
    loaded: { person: string; groups: { group_type: string; group_key: string; result: string }[]; geoip: string }
    enrollment: {
      property: string
      decides: boolean
      compared: {
        source: 'request' | 'geoip' | 'distinct_id' | 'group_key' | 'stored' | 'flag' | 'cohort' | 'absent'
        value: unknown
        substitute: string | null
        hidden?: true
      }
    } | null
    holdout: {
      id: string | number | null
      exclusion_percentage: number
      identifier: string | null
      hash: number | null
      held_out: boolean | null
    } | null
    conditions: {
      condition_index: number
      aggregation: string
      result:
        | 'matched'
        | 'no_condition_match'
        | 'no_condition_match_behavioral_cohort'
        | 'out_of_rollout_bound'
        | 'no_group_type'
        | 'rollout_miss'
        | 'holdout'
        | 'experiment_paused'
        | 'failed'
        | 'not_reached'
      filters: {
        type: string
        key: string
        operator: string | null
        value: unknown
        result: 'passed' | 'failed' | 'not_evaluated' | 'error'
        negated?: true
        compared: {
          source: 'request' | 'geoip' | 'distinct_id' | 'group_key' | 'stored' | 'flag' | 'cohort' | 'absent'
          value: unknown
          substitute: string | null
          hidden?: true
        } | null
        note: string | null
        filter_index: number
        cohort?: {
          id: number | null
          name: string | null
          is_static: boolean | null
          leaves: {
            type: string
            key: string
            operator: string | null
            value: unknown
            result: 'passed' | 'failed' | 'not_evaluated' | 'error'
            negated?: true
            compared: {
              source: 'request' | 'geoip' | 'distinct_id' | 'group_key' | 'stored' | 'flag' | 'cohort' | 'absent'
              value: unknown
              substitute: string | null
              hidden?: true
            } | null
            note: string | null
            path: string
          }[]
          leaves_left_out: number
          hidden?: true
        }
      }[]
      filters_left_out: number
      bucketing: {
        by: 'group_key' | 'distinct_id' | 'device_id' | 'anon_distinct_id' | 'stored_override'
        identifier: string | null
      } | null
      rollout: { percentage: number | null; hash: number | null }
      variant: string | null
      rule?: {
        id: string
        rule_type: string
        holdout: {
          id: string | number | null
          exclusion_percentage: number
          identifier: string | null
          hash: number | null
          held_out: boolean | null
        } | null
      }
    }[]
    conditions_left_out: number
    variant: {
      chosen: string | null
      hash: number | null
      variants: { key: string; rollout_percentage: number; from: number; to: number }[]
    } | null
    dependencies: {
      id: number
      key: string
      value: boolean | string | null
      failed: boolean
      reason: { code: string; condition_index: number | null; description: string } | null
    }[]
    dependencies_left_out: number
    missing_dependencies: { id: number; tested_by: string }[]
    dependency_cycle: string[] | null
    problems: string[]
  }
  FeatureFlag: {
    id: number
    key: string
    name: string
    filters: Schemas['FlagFilters']
    active: boolean
    archived: boolean
    deleted: boolean
    version: number
    ensure_experience_continuity: boolean
    bucketing_identifier: string | null
    evaluation_runtime: string
    evaluation_contexts: string[]
    has_encrypted_payloads: boolean
    is_remote_configuration: boolean
    tags: string[]
    created_at: string
    updated_at: string
    created_by: Schemas['Author'] | null
    experiment_set: number[]
    features: Record<string, unknown>[]
    last_called_at: string | null
    status: 'ACTIVE' | 'STALE' | 'INACTIVE' | 'ARCHIVED' | 'DELETED'
  }
  FeatureFlagActivity: {
    user: Schemas['Author'] | null
    activity: 'created' | 'updated' | 'deleted'
    scope: 'FeatureFlag'
    item_id: string
    detail: {
      name: string
      version: number
      changes: {
        path: string
        action: 'created' | 'changed' | 'deleted'
        before: unknown
        after: unknown
        type: 'FeatureFlag'
        field: string
      }[]
    }
    created_at: string
  }
  FeatureFlagChange: {
    key?: string
    name?: string | null
    description?: string | null
    filters?: Schemas['FlagFilters']
    active?: boolean
    archived?: boolean | null
    deleted?: boolean
    ensure_experience_continuity?: boolean | null
    bucketing_identifier?: string | null
    evaluation_runtime?: string | null
    evaluation_contexts?: string[] | null
    evaluation_tags?: string[] | null
    has_encrypted_payloads?: boolean | null
    is_remote_configuration?: boolean | null
    tags?: string[] | null
    rollout_percentage?: unknown
    version?: number | null
  }
  FeatureFlagDiff: {
    from: number
    to: number
    changes: { path: string; action: 'created' | 'changed' | 'deleted'; before: unknown; after: unknown }[]
  }
  FeatureFlagVersion: {
    version: number
    changed_by: Schemas['Author'] | null
    created_at: string
    flag: {
      id: number
      key: string
      name: string
      filters: Schemas['FlagFilters']
      active: boolean
      archived: boolean
      deleted: boolean
      version: number
      ensure_experience_continuity: boolean
      bucketing_identifier: string | null
      evaluation_runtime: string
      evaluation_contexts: string[]
      has_encrypted_payloads: boolean
      is_remote_configuration: boolean
      tags: string[]
      created_at: string
      updated_at: string
      created_by: Schemas['Author'] | null
      experiment_set: number[]
      features: Record<string, unknown>[]
    }
  }
  FlagFilters: {
    groups?: Schemas['ConditionSet'][]
    multivariate?: { variants: Schemas['FlagVariant'][] } | null
    payloads?: Record<string, unknown>
    aggregation_group_type_index?: number | null
    feature_enrollment?: boolean | null
    super_groups?: Schemas['ConditionSet'][] | null
    holdout?: Record<string, unknown> | null
  }
  FlagVariant: { key: string; name?: string | null; rollout_percentage: number }
  Group: {
    group_type_index: number
    group_key: string
    group_properties: Record<string, unknown>
    created_at: string
    version: number
  }
  GroupType: { group_type: string; group_type_index: number; being_deleted?: true }
  IngestionStatus: {
    lanes: Record<string, unknown>
    outcomes: { lane: string; outcome: 'stored' | 'dropped' | 'rejected'; reason: string; count: number }[]
    refused: { reason: string; count: number; last_seen: string }[]
  }
  IngestionWarnings: {
    results: {
      type: string
      count: number
      last_seen: string
      warnings: { timestamp: string; details: Record<string, unknown> }[]
    }[]
  }
  LinkedFeatureFlag: {
    id: number
    key: string
    name: string
    filters: Schemas['FlagFilters'] | null
    active: boolean
    deleted: boolean
    ensure_experience_continuity: boolean
    version: number
  }
  NewCohort: {
    name?: string | null
    description?: string | null
    is_static?: boolean
    filters?: Schemas['CohortFilters'] | null
    _create_static_person_ids?: (number | string)[]
    distinct_ids?: string[]
    csv?: string
  }
  NewEarlyAccessFeature: {
    name: string
    description?: string
    stage?: 'draft' | 'concept' | 'alpha' | 'beta' | 'general-availability' | 'archived'
    documentation_url?: string
    payload?: Record<string, unknown>
    feature_flag_id?: number | null
  }
  NewExperiment: {
    name: string
    description?: string | null
    type?: string | null
    parameters?: Schemas['ExperimentParameters'] | null
    metrics?: unknown[] | null
    metrics_secondary?: unknown[] | null
    secondary_metrics?: unknown[] | null
    saved_metrics_ids?: unknown[] | null
    filters?: Record<string, unknown> | null
    exposure_criteria?: Record<string, unknown> | null
    stats_config?: Record<string, unknown> | null
    conclusion?: string | null
    conclusion_comment?: string | null
    start_date?: string | null
    end_date?: string | null
    archived?: boolean
    feature_flag?: {
      id?: number
      key?: string
      name?: string
      filters?: Record<string, unknown> | null
      active?: boolean
      deleted?: boolean
      ensure_experience_continuity?: boolean | null
      version?: number
    } | null
    update_feature_flag_params?: boolean
    allow_unknown_events?: boolean
    feature_flag_key: string
  }
  NewFeatureFlag: {
    key: string
    name?: string | null
    description?: string | null
    filters?: Schemas['FlagFilters']
    active?: boolean
    archived?: boolean | null
    deleted?: boolean
    ensure_experience_continuity?: boolean | null
    bucketing_identifier?: string | null
    evaluation_runtime?: string | null
    evaluation_contexts?: string[] | null
    evaluation_tags?: string[] | null
    has_encrypted_payloads?: boolean | null
    is_remote_configuration?: boolean | null
    tags?: string[] | null
    rollout_percentage?: unknown
  }
  NewPersonalApiKey: { label: string; scopes: string[]; scoped_teams?: number[] | null }
  NewProject: {
    name: string
    timezone?: string
    anonymize_ips?: boolean
    geoip_enabled?: boolean
    property_matching_version?: 1 | 2
    quotas?: {
      events?: number | null
      feature_flag_requests?: number | null
      exceptions?: number | null
      recordings?: number | null
      llm_events?: number | null
      survey_responses?: number | null
    }
    drop_events_older_than_seconds?: number | null
    person_processing_opt_out?: boolean
    feature_flag_called_dedup?: boolean
    group_types_frozen?: boolean
    cookieless_server_hash_mode?: 0 | 1 | 2 | null
    autocapture_opt_out?: boolean | null
    autocapture_exceptions_opt_in?: boolean | null
    autocapture_web_vitals_opt_in?: boolean | null
    autocapture_web_vitals_allowed_metrics?: string[] | null
    capture_performance_opt_in?: boolean | null
    capture_console_log_opt_in?: boolean | null
    capture_dead_clicks?: boolean | null
    heatmaps_opt_in?: boolean | null
    surveys_opt_in?: boolean | null
    survey_config?: Record<string, unknown> | null
    session_recording_opt_in?: boolean | null
    session_recording_sample_rate?: unknown | null
    session_recording_minimum_duration_milliseconds?: number | null
    session_recording_linked_flag?: { id?: unknown; key?: unknown; variant?: unknown } | null
    session_recording_network_payload_capture_config?: { recordBody?: unknown; recordHeaders?: unknown } | null
    session_recording_masking_config?: {
      maskAllInputs?: unknown
      maskTextSelector?: unknown
      blockSelector?: unknown
    } | null
    session_recording_url_trigger_config?: { url: string; matching: 'regex' }[] | null
    session_recording_url_blocklist_config?: { url: string; matching: 'regex' }[] | null
    session_recording_event_trigger_config?: string[] | null
    session_recording_trigger_match_type_config?: 'all' | 'any' | null
    session_replay_config?: { record_canvas?: unknown } | null
    recording_domains?: string[] | null
    flags_persistence_default?: boolean | null
    minimal_flag_called_events?: boolean | null
    app_urls?: (string | null)[] | null
    test_account_filters?: Record<string, unknown>[] | null
    test_account_filters_default_checked?: boolean | null
    path_cleaning_filters?: Record<string, unknown>[] | null
    data_attributes?: string[] | null
    person_display_name_properties?: string[] | null
    live_events_columns?: string[] | null
    correlation_config?: Record<string, unknown> | null
    autocapture_exceptions_errors_to_ignore?: string[] | null
    logs_settings?: Record<string, unknown> | null
    extra_settings?: Record<string, unknown> | null
    session_recording_trigger_groups?: Record<string, unknown> | null
    week_start_day?: number | null
    human_friendly_comparison_periods?: boolean | null
    inject_web_apps?: boolean | null
    is_demo?: boolean | null
    completed_snippet_onboarding?: boolean | null
    has_completed_onboarding_for?: Record<string, unknown> | null
    onboarding_tasks?: Record<string, unknown> | null
    feature_flag_confirmation_enabled?: boolean | null
    feature_flag_confirmation_message?: string | null
    business_model?: 'b2b' | 'b2c' | 'other' | null
    base_currency?: string | null
    product_description?: string | null
    api_token?: string
  }
  NewSurvey: {
    name: string
    type: 'popover' | 'widget' | 'api' | 'external_survey'
    description?: string
    questions?: Schemas['SurveyQuestion'][] | null
    conditions?: Schemas['SurveyConditions'] | null
    appearance?: Record<string, unknown> | null
    schedule?: 'once' | 'recurring' | 'always' | null
    translations?: Record<string, unknown> | null
    enable_partial_responses?: boolean | null
    responses_limit?: number | null
    iteration_count?: number | null
    iteration_frequency_days?: number | null
    current_iteration?: number | null
    current_iteration_start_date?: string | null
    response_sampling_start_date?: string | null
    response_sampling_interval_type?: 'day' | 'week' | 'month' | null
    response_sampling_interval?: number | null
    response_sampling_limit?: number | null
    response_sampling_daily_limits?: unknown
    enable_iframe_embedding?: boolean | null
    form_content?: Record<string, unknown> | null
    linked_flag_id?: number | null
    start_date?: string | null
    end_date?: string | null
    archived?: boolean
    linked_insight_id?: number | null
    targeting_flag_id?: number | null
    targeting_flag_filters?: Schemas['FlagFilters'] | null
    remove_targeting_flag?: boolean | null
  }
  Organization: {
    id: string
    name: string
    slug: string
    projects: { id: number; uuid: string; organization: string; name: string; api_token: string; timezone: string }[]
    teams: { id: number; uuid: string; organization: string; name: string; api_token: string; timezone: string }[]
  }
  Person: {
    id: number
    uuid: string
    name: string
    distinct_ids: string[]
    distinct_id_count: number
    properties: Record<string, unknown>
    created_at: string
    is_identified: boolean
    version: number
    distinct_id_versions: Record<string, number>
    flag_overrides: { feature_flag_key: string; hash_key: string }[]
  }
  PersonalApiKey: {
    id: string
    label: string
    scopes: string[]
    scoped_teams: number[]
    created_at: string
    last_used_at: string | null
    scoped_organizations: string[]
  }
  Project: {
    id: number
    uuid: string
    name: string
    api_token: string
    timezone: string
    anonymize_ips: boolean
    geoip_enabled: boolean
    property_matching_version: 1 | 2
    quotas: Schemas['Quotas']
    drop_events_older_than_seconds: number | null
    person_processing_opt_out: boolean
    feature_flag_called_dedup: boolean
    group_types_frozen: boolean
    cookieless_server_hash_mode: 0 | 1 | 2
    autocapture_opt_out: boolean | null
    autocapture_exceptions_opt_in: boolean | null
    autocapture_web_vitals_opt_in: boolean | null
    autocapture_web_vitals_allowed_metrics: string[] | null
    capture_performance_opt_in: boolean | null
    capture_console_log_opt_in: boolean | null
    capture_dead_clicks: boolean | null
    heatmaps_opt_in: boolean | null
    surveys_opt_in: boolean | null
    survey_config: Record<string, unknown> | null
    session_recording_opt_in: boolean | null
    session_recording_sample_rate: unknown | null
    session_recording_minimum_duration_milliseconds: number | null
    session_recording_linked_flag: { id?: unknown; key?: unknown; variant?: unknown } | null
    session_recording_network_payload_capture_config: { recordBody?: unknown; recordHeaders?: unknown } | null
    session_recording_masking_config: {
      maskAllInputs?: unknown
      maskTextSelector?: unknown
      blockSelector?: unknown
    } | null
    session_recording_url_trigger_config: { url: string; matching: 'regex' }[] | null
    session_recording_url_blocklist_config: { url: string; matching: 'regex' }[] | null
    session_recording_event_trigger_config: string[] | null
    session_recording_trigger_match_type_config: 'all' | 'any' | null
    session_replay_config: { record_canvas?: unknown } | null
    recording_domains: string[] | null
    flags_persistence_default: boolean | null
    minimal_flag_called_events: boolean | null
    app_urls: (string | null)[] | null
    test_account_filters: Record<string, unknown>[] | null
    test_account_filters_default_checked: boolean | null
    path_cleaning_filters: Record<string, unknown>[] | null
    data_attributes: string[] | null
    person_display_name_properties: string[] | null
    live_events_columns: string[] | null
    correlation_config: Record<string, unknown> | null
    autocapture_exceptions_errors_to_ignore: string[] | null
    logs_settings: Record<string, unknown> | null
    extra_settings: Record<string, unknown> | null
    session_recording_trigger_groups: Record<string, unknown> | null
    week_start_day: number | null
    human_friendly_comparison_periods: boolean | null
    inject_web_apps: boolean | null
    is_demo: boolean | null
    completed_snippet_onboarding: boolean | null
    has_completed_onboarding_for: Record<string, unknown> | null
    onboarding_tasks: Record<string, unknown> | null
    feature_flag_confirmation_enabled: boolean | null
    feature_flag_confirmation_message: string | null
    business_model: 'b2b' | 'b2c' | 'other' | null
    base_currency: string | null
    product_description: string | null
    created_at: string
    organization: string
    secret_api_token: string | null
    secret_api_token_backup: string | null
    person_on_events_querying_enabled: true
  }
  ProjectChange: {
    name?: string
    timezone?: string
    anonymize_ips?: boolean
    geoip_enabled?: boolean
    property_matching_version?: 1 | 2
    quotas?: {
      events?: number | null
      feature_flag_requests?: number | null
      exceptions?: number | null
      recordings?: number | null
      llm_events?: number | null
      survey_responses?: number | null
    }
    drop_events_older_than_seconds?: number | null
    person_processing_opt_out?: boolean
    feature_flag_called_dedup?: boolean
    group_types_frozen?: boolean
    cookieless_server_hash_mode?: 0 | 1 | 2 | null
    autocapture_opt_out?: boolean | null
    autocapture_exceptions_opt_in?: boolean | null
    autocapture_web_vitals_opt_in?: boolean | null
    autocapture_web_vitals_allowed_metrics?: string[] | null
    capture_performance_opt_in?: boolean | null
    capture_console_log_opt_in?: boolean | null
    capture_dead_clicks?: boolean | null
    heatmaps_opt_in?: boolean | null
    surveys_opt_in?: boolean | null
    survey_config?: Record<string, unknown> | null
    session_recording_opt_in?: boolean | null
    session_recording_sample_rate?: unknown | null
    session_recording_minimum_duration_milliseconds?: number | null
    session_recording_linked_flag?: { id?: unknown; key?: unknown; variant?: unknown } | null
    session_recording_network_payload_capture_config?: { recordBody?: unknown; recordHeaders?: unknown } | null
    session_recording_masking_config?: {
      maskAllInputs?: unknown
      maskTextSelector?: unknown
      blockSelector?: unknown
    } | null
    session_recording_url_trigger_config?: { url: string; matching: 'regex' }[] | null
    session_recording_url_blocklist_config?: { url: string; matching: 'regex' }[] | null
    session_recording_event_trigger_config?: string[] | null
    session_recording_trigger_match_type_config?: 'all' | 'any' | null
    session_replay_config?: { record_canvas?: unknown } | null
    recording_domains?: string[] | null
    flags_persistence_default?: boolean | null
    minimal_flag_called_events?: boolean | null
    app_urls?: (string | null)[] | null
    test_account_filters?: Record<string, unknown>[] | null
    test_account_filters_default_checked?: boolean | null
    path_cleaning_filters?: Record<string, unknown>[] | null
    data_attributes?: string[] | null
    person_display_name_properties?: string[] | null
    live_events_columns?: string[] | null
    correlation_config?: Record<string, unknown> | null
    autocapture_exceptions_errors_to_ignore?: string[] | null
    logs_settings?: Record<string, unknown> | null
    extra_settings?: Record<string, unknown> | null
    session_recording_trigger_groups?: Record<string, unknown> | null
    week_start_day?: number | null
    human_friendly_comparison_periods?: boolean | null
    inject_web_apps?: boolean | null
    is_demo?: boolean | null
    completed_snippet_onboarding?: boolean | null
    has_completed_onboarding_for?: Record<string, unknown> | null
    onboarding_tasks?: Record<string, unknown> | null
    feature_flag_confirmation_enabled?: boolean | null
    feature_flag_confirmation_message?: string | null
    business_model?: 'b2b' | 'b2c' | 'other' | null
    base_currency?: string | null
    product_description?: string | null
  }
  PropertyDefinition: {
    id: string
    name: string
    property_type: 'String' | 'Numeric' | 'Boolean' | 'DateTime' | null
    is_numerical: boolean
    is_seen_on_filtered_events: boolean | null
    description: string | null
    owner: null
    tags: string[]
    updated_at: string | null
    updated_by: null
    verified: boolean
    verified_at: null
    verified_by: null
    hidden: boolean
  }
  PropertyFilter: {
    key: string
    value?: unknown
    operator?:
      | 'exact'
      | 'is_not'
      | 'is_set'
      | 'is_not_set'
      | 'icontains'
      | 'not_icontains'
      | 'starts_with'
      | 'not_starts_with'
      | 'ends_with'
      | 'not_ends_with'
      | 'icontains_multi'
      | 'not_icontains_multi'
      | 'regex'
      | 'not_regex'
      | 'gt'
      | 'gte'
      | 'lt'
      | 'lte'
      | 'between'
      | 'not_between'
      | 'is_date_exact'
      | 'is_date_before'
      | 'is_date_after'
      | 'semver_eq'
      | 'semver_neq'
      | 'semver_gt'
      | 'semver_gte'
      | 'semver_lt'
      | 'semver_lte'
      | 'semver_tilde'
      | 'semver_caret'
      | 'semver_wildcard'
      | 'in'
      | 'not_in'
      | 'flag_evaluates_to'
      | null
    group_type_index?: number | null
    type: 'person' | 'group' | 'cohort' | 'flag' | 'person_metadata'
  }
  Quotas: {
    events: number | null
    feature_flag_requests: number | null
    exceptions: number | null
    recordings: number | null
    llm_events: number | null
    survey_responses: number | null
  }
  RejectReplay: {
    ids?: string[]
    filter?: {
      reason?: string
      field?: string
      event?: string
      distinct_id?: string
      uuid?: string
      lane?: 'main' | 'historical' | 'overflow' | 'error_tracking' | 'heatmaps' | 'warnings' | 'ai' | 'replay'
      search?: string
      after?: string
      before?: string
      replayed?: boolean
    }
    limit?: number
    cursor?: string
    dry_run?: boolean
    partial?: boolean
  }
  RejectReplayReport: {
    dry_run: boolean
    counts: { stored: number; refused: number; cannot: number; events: number }
    results: {
      id: string
      result: 'stored' | 'refused' | 'cannot'
      reason: string | null
      field: string | null
      events: number
      events_refused: number
    }[]
    remaining: number
    next: string | null
  }
  RejectedEvent: {
    id: string
    reason: string
    field: string
    lane: string
    import_job_id: number
    uuid: string
    event: string
    distinct_id: string
    received_at: string
    body: string
    body_kind: string | null
    body_cut: boolean
    replayed_at: string | null
  }
  ReplayMessage: {
    id: string
    session_id: string
    window_id: string
    distinct_id: string
    snapshot_source: 'web' | 'mobile'
    lib: string
    items: number
    bytes: number
    timestamp: string
    received_at: string
  }
  Survey: {
    id: string
    name: string
    type: 'popover' | 'widget' | 'api' | 'external_survey'
    description: string
    questions: Schemas['SurveyQuestion'][] | null
    conditions: Schemas['SurveyConditions'] | null
    appearance: Record<string, unknown> | null
    schedule: 'once' | 'recurring' | 'always' | null
    translations: Record<string, unknown> | null
    enable_partial_responses: boolean | null
    responses_limit: number | null
    iteration_count: number | null
    iteration_frequency_days: number | null
    current_iteration: number | null
    current_iteration_start_date: string | null
    response_sampling_start_date: string | null
    response_sampling_interval_type: 'day' | 'week' | 'month' | null
    response_sampling_interval: number | null
    response_sampling_limit: number | null
    response_sampling_daily_limits: unknown
    enable_iframe_embedding: boolean | null
    form_content: Record<string, unknown> | null
    linked_flag_id: number | null
    start_date: string | null
    end_date: string | null
    archived: boolean
    created_at: string
    updated_at: string
    created_by: Schemas['Author'] | null
    linked_flag: Schemas['LinkedFeatureFlag'] | null
    targeting_flag: Schemas['LinkedFeatureFlag'] | null
    internal_targeting_flag: Schemas['LinkedFeatureFlag'] | null
  }
  SurveyChange: {
    name?: string
    type?: 'popover' | 'widget' | 'api' | 'external_survey'
    description?: string
    questions?: Schemas['SurveyQuestion'][] | null
    conditions?: Schemas['SurveyConditions'] | null
    appearance?: Record<string, unknown> | null
    schedule?: 'once' | 'recurring' | 'always' | null
    translations?: Record<string, unknown> | null
    enable_partial_responses?: boolean | null
    responses_limit?: number | null
    iteration_count?: number | null
    iteration_frequency_days?: number | null
    current_iteration?: number | null
    current_iteration_start_date?: string | null
    response_sampling_start_date?: string | null
    response_sampling_interval_type?: 'day' | 'week' | 'month' | null
    response_sampling_interval?: number | null
    response_sampling_limit?: number | null
    response_sampling_daily_limits?: unknown
    enable_iframe_embedding?: boolean | null
    form_content?: Record<string, unknown> | null
    linked_flag_id?: number | null
    start_date?: string | null
    end_date?: string | null
    archived?: boolean
    linked_insight_id?: number | null
    targeting_flag_id?: number | null
    targeting_flag_filters?: Schemas['FlagFilters'] | null
    remove_targeting_flag?: boolean | null
  }
  SurveyConditions: {
    url?: string
    urlMatchType?: string
    selector?: string
    linkedFlagVariant?: string | null
    deviceTypes?: string[]
    deviceTypesMatchType?: string
    seenSurveyWaitPeriodInDays?: number | null
    events?: Record<string, unknown> | null
    actions?: Record<string, unknown> | null
  }
  SurveyQuestion: {
    id?: string
    type: 'open' | 'link' | 'rating' | 'single_choice' | 'multiple_choice'
    question: string
    description?: string | null
    descriptionContentType?: 'html' | 'text'
    optional?: boolean
    buttonText?: string
    link?: string | null
    display?: string
    scale?: number
    lowerBoundLabel?: string
    upperBoundLabel?: string
    choices?: string[]
    shuffleOptions?: boolean
    hasOpenChoice?: boolean
    branching?: Record<string, unknown>
  }
  SurveyStats: {
    survey_id: string
    start_date: string | null
    end_date: string | null
    stats: {
      'survey shown': {
        total_count: number
        unique_persons: number
        first_seen: string | null
        last_seen: string | null
        total_count_only_seen: number
        unique_persons_only_seen: number
      }
      'survey dismissed': {
        total_count: number
        unique_persons: number
        first_seen: string | null
        last_seen: string | null
        total_count_only_seen: number
        unique_persons_only_seen: number
      }
      'survey sent': {
        total_count: number
        unique_persons: number
        first_seen: string | null
        last_seen: string | null
        total_count_only_seen: number
        unique_persons_only_seen: number
      }
    }
    rates: {
      response_rate: number
      dismissal_rate: number
      unique_users_response_rate: number
      unique_users_dismissal_rate: number
    }
  }
  SurveysStats: {
    stats: {
      'survey shown': {
        total_count: number
        unique_persons: number
        first_seen: string | null
        last_seen: string | null
        total_count_only_seen: number
        unique_persons_only_seen: number
      }
      'survey dismissed': {
        total_count: number
        unique_persons: number
        first_seen: string | null
        last_seen: string | null
        total_count_only_seen: number
        unique_persons_only_seen: number
      }
      'survey sent': {
        total_count: number
        unique_persons: number
        first_seen: string | null
        last_seen: string | null
        total_count_only_seen: number
        unique_persons_only_seen: number
      }
    }
    rates: {
      response_rate: number
      dismissal_rate: number
      unique_users_response_rate: number
      unique_users_dismissal_rate: number
    }
  }
  Usage: {
    results: {
      date: string
      events_charged: number
      events_imported: number
      flag_requests: number
      exceptions: number
      llm_events: number
      survey_responses: number
      recordings: number
    }[]
  }
  User: {
    id: number
    uuid: string
    distinct_id: string
    first_name: string
    last_name: string
    email: string
    is_staff: boolean
    team: { id: number; uuid: string; organization: string; name: string; api_token: string; timezone: string } | null
    organization: Schemas['Organization']
    organizations: { id: string; name: string; slug: string }[]
  }
  WrittenCohort: {
    id: number
    name: string
    description: string
    is_static: boolean
    filters: Schemas['CohortFilters']
    deleted: boolean
    version: number
    count: number | null
    last_calculation: string | null
    created_at: string
    updated_at: string
    created_by: Schemas['Author'] | null
    groups: unknown[]
    is_calculating: boolean
    errors_calculating: number
    experiment_set: number[]
    warnings?: { attr: string; code: string; detail: string }[]
    members?: { changed: number; unchanged: number; unknown_count: number; unknown: string[] }
  }
  WrittenFeatureFlag: {
    id: number
    key: string
    name: string
    filters: Schemas['FlagFilters']
    active: boolean
    archived: boolean
    deleted: boolean
    version: number
    ensure_experience_continuity: boolean
    bucketing_identifier: string | null
    evaluation_runtime: string
    evaluation_contexts: string[]
    has_encrypted_payloads: boolean
    is_remote_configuration: boolean
    tags: string[]
    created_at: string
    updated_at: string
    created_by: Schemas['Author'] | null
    experiment_set: number[]
    features: Record<string, unknown>[]
    last_called_at: string | null
    status: 'ACTIVE' | 'STALE' | 'INACTIVE' | 'ARCHIVED' | 'DELETED'
    warnings?: { attr: string; code: string; detail: string }[]
  }
}
