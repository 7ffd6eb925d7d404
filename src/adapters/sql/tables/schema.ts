// The tables of the state as Kysely sees them, on SQLite and PostgreSQL alike. Booleans are 0/1, times are epoch ms, JSON
// is text with the literals that the client wrote. Only the migrations have DDL.

import type { Generated } from 'kysely'
import type { cohortResource } from '#core/flags/definitions/cohort.ts'
import type { flagResource } from '#core/flags/definitions/flag.ts'
import { type ImportStep, importJobStates } from '#core/imports/import-job.ts'
import type { personalKeyResource } from '#core/personal-key.ts'
import type { projectResource } from '#core/project.ts'
import {
  authorField,
  choiceField,
  type Field,
  instantField,
  integerField,
  nullable,
  objectField,
  type RowOf,
  textField,
} from '#core/resource.ts'
import type { ResourceName, resources } from '#core/resources/resources.ts'
import type { sessionResource, signInLinkResource } from '#core/users/session.ts'
import type { userResource } from '#core/users/user.ts'

type Resources = typeof resources
type ResourceTables = {
  [N in ResourceName as Resources[N]['table']]: RowOf<Resources[N]> &
    (Resources[N] extends { readonly keepsDeleted: true } ? { deleted: number } : unknown)
}

export interface StateSchema extends ResourceTables {
  schema_version: { version: number; name: string; applied_at: Generated<string> }
  id_sequence: { name: string; last_id: number }
  revision: { id: number; value: number }
  project: ProjectTable
  personal_api_key: RowOf<typeof personalKeyResource> & { secret_hash: string }
  user: RowOf<typeof userResource> & { password_hash: string | null }
  user_session: RowOf<typeof sessionResource> & { secret_hash: string }
  sign_in_link: RowOf<typeof signInLinkResource> & { token_hash: string }
  sign_in_attempt: { name: string; attempts: number; counted_at: number }
  feature_flag: RowOf<typeof flagResource>
  feature_flag_version: FlagVersionTable
  /** The last call of each flag (epoch ms), according to the live events that the worker has processed. */
  flag_last_call: { flag_id: number; called_at: number }
  person: PersonTable
  person_distinct_id: { project_id: number; distinct_id: string; person_id: number; version: number }
  personless_distinct_id: { project_id: number; distinct_id: string; next_version: Generated<number> }
  flag_hash_key_override: { project_id: number; person_id: number; feature_flag_key: string; hash_key: string }
  group_type_mapping: GroupTypeTable
  group: GroupTable
  log_position: { stream: string; owner: string; offset: number; committed_at: number | null }
  deferred_project: { stream: string; project_id: number; from_offset: number }
  event_store_mark: { id: number; mark: string }
  subject_mirror: { id: number; version: number; fill: string }
  subject_change: { id: Generated<number>; subjects: string }
  followed_log: { id: number; log_id: string; place: string; former_log_id: string | null; begun_at: string }
  trusted_time: { id: number; at_ms: number; ahead_ms: number; stood_ms: number }
  schedule_lease: { name: string; owner: string; expires_at: number }
  import_job: RowOf<typeof describedJobRow>
  import_link: ImportLinkTable
  import_note: { import_job_id: number; reason: string; note_count: number }
  import_note_sample: { id: Generated<number>; import_job_id: number; reason: string; details: string }
  import_group_type: { import_job_id: number; group_type_index: number; name: string; is_added: number }
  import_assignments: ImportAssignmentsTable
  import_generated: { project_id: number; uuid: string; timestamp: number; import_job_id: number }
  person_erasure: PersonErasureTable
  erased_person: { project_id: number; person_uuid: string; erasure_id: number }
  erased_distinct_id: { project_id: number; distinct_id: string; erasure_id: number; own_uuid: string }
  person_repair: PersonRepairTable
  /** Distinct ids of erased persons whose events were kept, with the project's count of erasures at that time. */
  erased_past: { project_id: number; distinct_id: string; erasures: number }
  /** Distinct ids that were split from each other. */
  person_cut: { project_id: number; distinct_id: string; person_uuid: string; created_at: number; cut_at: number }
  cookieless_identify: RowOf<typeof visitorIdentify>
  cookieless_session: RowOf<typeof visitorSession>
  chunk_outcome: { project_id: number; lane: string; outcome: string; reason: string; event_count: number }
  ingestion_warning: WarningTable
  ingestion_warning_day: { project_id: number; type: string; day: string; warning_count: number; last_seen: number }
  usage_daily: UsageTable
  refused_daily: RefusedTable
  cohort: RowOf<typeof cohortResource>
  cohort_person: { person_id: number; cohort_id: number }
  secret_api_key: SecretKeyTable
  activity_log: ActivityTable
}

export interface ProjectTable extends RowOf<typeof projectResource> {
  deleted: number
  /** The instance's revision when anything of this project that concerns evaluation last changed. */
  revision: number
  /** How many times the undo of one of the project's import jobs has begun. */
  import_undos: Generated<number>
  /** How many erasures of persons the project has had. */
  erasures: Generated<number>
}

export interface FlagVersionTable {
  flag_id: number
  version: number
  project_id: number
  /** The whole flag as JSON. */
  snapshot: string
  changed_by: string | null
  created_at: number
}

export interface PersonTable {
  id: Generated<number>
  project_id: number
  uuid: string
  properties: string
  property_marks: string
  created_at: number
  is_identified: number
  version: number
  last_seen_at: number
}

export interface GroupTypeTable {
  project_id: number
  group_type: string
  group_type_index: number
  /** 1 while the groups of the deleted type are being deleted. */
  removed: Generated<number>
}

export interface GroupTable {
  project_id: number
  group_type_index: number
  group_key: string
  group_properties: string
  property_marks: string
  created_at: number
  version: number
}

export interface ImportLinkTable {
  id: Generated<number>
  import_job_id: number
  distinct_id: string
  other_id: string
  dangerously: number
  timestamp: number
  uuid: string
}

export interface ImportAssignmentsTable {
  import_job_id: number
  /** The person that the job merged away. */
  person_uuid: string
  survivor_uuid: string
  /** JSON objects: `Assignments` of `core/imports/import-changes.ts`. */
  own: string
  taken: string
}

export interface PersonErasureTable {
  id: Generated<number>
  project_id: number
  /** The project's count of erasures, this one included. */
  erasures: number
  /** Mirrored rows up to this version are from before the erasure. */
  mirror_version: number
  requested_at: number
  requested_by: string | null
  keeps_person: number
  deletes_events: number
  deletes_recordings: number
  log_id: string
  /** JSON object: the offset at which each stream of the log `log_id` ended. */
  log_ends: string
  /** JSON object: how many rows of each kind the erasure removed; null until they are counted. */
  removed: string | null
  /** JSON list of HeldRange; null for none. */
  emptied: string | null
  done_at: number | null
}

export interface PersonRepairTable {
  id: Generated<number>
  project_id: number
  /** 0 for a preview. */
  changes_persons: number
  requested_at: number
  done_at: number | null
  requested_by: string | null
  /** JSON of a `RepairRequest`. */
  request: string
  /** JSON of a `RepairReport`. */
  report: string | null
}

export interface WarningTable {
  id: Generated<number>
  project_id: number
  type: string
  day: string
  timestamp: number
  details: string
}

export interface UsageTable {
  project_id: number
  day: string
  events_charged: number
  events_imported: number
  flag_requests: number
  exceptions: Generated<number>
  llm_events: Generated<number>
  survey_responses: Generated<number>
  recordings: Generated<number>
  /** 1 once the event counts were set when the day was already before the freezing line: after that they never change. */
  events_frozen: number
}

export interface RefusedTable {
  project_id: number
  day: string
  reason: string
  refused_count: number
  last_seen: number
}

export interface SecretKeyTable {
  project_id: number
  role: string
  secret_hash: string
  /** The first and last characters, for users to recognise the key. */
  masked: string
  created_at: number
}

export interface ActivityTable {
  id: Generated<number>
  /** Null for what belongs to the instance. */
  project_id: number | null
  kind: string
  item_id: string
  item_name: string
  activity: string
  version: number | null
  /** JSON list of JsonChange. */
  changes: string
  /** JSON of an `Author`, as in every author column. */
  author: string | null
  created_at: number
}

/** The fields of cookieless visitors' rows, in the order in which `buildInsertStatements` names the columns. */
const visitorName = { projectId: integerField('project_id'), hash: textField('hash') }

export const visitorIdentify = {
  fields: {
    ...visitorName,
    offset: integerField('log_offset'),
    uuid: textField('uuid'),
    ordinal: integerField('ordinal'),
    day: textField('day'),
  },
}

export const visitorSession = {
  fields: {
    ...visitorName,
    identifies: integerField('identifies'),
    offset: integerField('log_offset'),
    sessionId: textField('session_id'),
    lastMs: integerField('last_at'),
    day: textField('day'),
  },
}

/** An import job without the texts that its client supplied, since they may be long. */
export const importJobRow = {
  fields: {
    id: integerField('id'),
    /** Null for an implicit job. */
    publicId: nullable(integerField('public_id')),
    storedRows: nullable(integerField('stored_rows')),
    projectId: integerField('project_id'),
    day: nullable(textField('implicit_day')),
    name: textField('name'),
    source: textField('source'),
    state: choiceField('state', importJobStates),
    step: nullable(textField('step') as Field<ImportStep, 'step', 'step'>),
    /** Only the options that differ from their defaults. */
    options: objectField('options'),
    createdBy: nullable(authorField('created_by')),
    createdAtMs: instantField('created_at'),
    updatedAtMs: instantField('updated_at'),
    publishBeganAtMs: nullable(instantField('publish_began_at')),
    publishedAtMs: nullable(instantField('published_at')),
    discardedAtMs: nullable(instantField('discarded_at')),
    failureCode: nullable(textField('failure_code')),
    failingSinceMs: nullable(instantField('failing_since')),
    finalAtMs: nullable(instantField('final_at')),
  },
}

export const describedJobRow = {
  fields: { ...importJobRow.fields, plan: objectField('plan'), progress: objectField('progress') },
}
