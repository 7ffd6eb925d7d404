// The activity log, in the form of PostHog's.

import Type, { type Static } from 'typebox'
import type { Activity, ActivityKind } from '#core/activity.ts'
import type { JsonChange } from '#core/json-diff.ts'
import { authorSchema, encodeAuthor } from './author.ts'
import { formatInstant, instantSchema, nullable } from './shapes.ts'

/** PostHog's names, and names in the same style for what PostHog lacks. */
export const activityScopes: Readonly<Record<ActivityKind, string>> = {
  feature_flag: 'FeatureFlag',
  cohort: 'Cohort',
  early_access_feature: 'EarlyAccessFeature',
  survey: 'Survey',
  experiment: 'Experiment',
  project: 'Team',
  personal_api_key: 'PersonalAPIKey',
  import_job: 'ImportJob',
  group_type: 'GroupType',
  person: 'Person',
  rejected_event: 'RejectedEvent',
  user: 'User',
}

export const changeSchema = Type.Object({
  path: Type.String({ description: 'Path of keys and list indexes, joined by dots.' }),
  action: Type.Union([Type.Literal('created'), Type.Literal('changed'), Type.Literal('deleted')]),
  before: Type.Unknown(),
  after: Type.Unknown(),
})

export const activitySchema = Type.Object({
  id: Type.String(),
  user: authorSchema,
  activity: Type.String({
    description: '`created`, `updated`, `deleted`, or what else was done, such as `members_added` or `replayed`.',
  }),
  scope: Type.String({ description: `What was changed: ${Object.values(activityScopes).join(', ')}.` }),
  item_id: Type.String(),
  project_id: nullable(Type.Integer({ description: 'Null for what belongs to the instance.' })),
  detail: Type.Object({
    name: Type.String(),
    version: Type.Optional(Type.Integer({ description: 'The version that a flag got.' })),
    changes: Type.Array(
      Type.Object({
        ...changeSchema.properties,
        type: Type.String({ description: 'Same as `scope`.' }),
        field: Type.String({ description: 'First part of `path`.' }),
      }),
    ),
  }),
  created_at: instantSchema,
})
export type ActivityJson = Static<typeof activitySchema>

/** @param changes shown in place of the entry's own changes. */
export function encodeActivity(entry: Activity, changes: readonly JsonChange[] = entry.changes): ActivityJson {
  const type = activityScopes[entry.kind]
  return {
    id: String(entry.id),
    user: encodeAuthor(entry.by),
    activity: entry.activity,
    scope: type,
    item_id: entry.itemId,
    project_id: entry.projectId,
    detail: {
      name: entry.itemName,
      ...(entry.version === undefined ? {} : { version: entry.version }),
      changes: changes.map(change => ({ type, field: change.path.split('.', 1)[0]!, ...change })),
    },
    created_at: formatInstant(entry.atMs),
  }
}
