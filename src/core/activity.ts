// The activity log: what was changed, by whom and when, with the values before and after. A store writes the entry in the
// same transaction as the change.

import type { Author } from './author.ts'
import type { JsonObject } from './json.ts'
import { diffJson, type JsonChange } from './json-diff.ts'

export const activityKinds = [
  'feature_flag',
  'cohort',
  'early_access_feature',
  'survey',
  'experiment',
  'project',
  'personal_api_key',
  'import_job',
  'group_type',
  'person',
  'rejected_event',
  'user',
] as const

/** What an entry is about. */
export type ActivityKind = (typeof activityKinds)[number]

export interface NewActivity {
  readonly kind: ActivityKind
  /** Null for an item that belongs to the whole instance, such as a personal API key. */
  readonly projectId: number | null
  readonly itemId: string
  /** The item's name after the change, or before its deletion. */
  readonly itemName: string
  /** `created`, `updated`, `deleted`, or another verb for an action that changes no fields. */
  readonly activity: string
  /** The changed fields, by their names in the private API. Empty for a flag, whose versions record its changes. */
  readonly changes: readonly JsonChange[]
  /** The flag's version after the change; absent for other items. */
  readonly version?: number
}

export interface Activity extends NewActivity {
  /** Ascending. */
  readonly id: number
  /** Null for a write that an older release made without a key. */
  readonly by: Author | null
  readonly atMs: number
}

/**
 * The entry for a change of fields; null when no field that the log shows has changed.
 * @param before what the log shows of the item, by names of the private API; null before its creation.
 * @param after null after its deletion.
 */
export function createActivityEntry(
  item: Pick<NewActivity, 'kind' | 'projectId' | 'itemId' | 'itemName'>,
  before: JsonObject | null,
  after: JsonObject | null,
): NewActivity | null {
  const changes = diffJson(before ?? {}, after ?? {})
    // The entry of a new or deleted item lists only the fields that have a value.
    .filter(change => (before !== null && after !== null) || (change.before ?? change.after) !== null)
  if (before === null) return { ...item, activity: 'created', changes }
  if (after === null) return { ...item, activity: 'deleted', changes }
  return changes.length === 0 ? null : { ...item, activity: 'updated', changes }
}
