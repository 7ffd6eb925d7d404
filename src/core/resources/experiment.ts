// An experiment: a flag with variants, and why it runs. It is stored for the tools that manage it, and it marks its
// flag. The server does not compute results.

import {
  authorField,
  booleanField,
  type ItemOf,
  instantField,
  instantSchema,
  integerField,
  membersField,
  nameSchema,
  nullable,
  orNull,
  textField,
} from '../resource.ts'

const anyObject = (description?: string) =>
  orNull({ type: 'object', ...(description !== undefined && { description }) })
const list = { schema: orNull({ type: 'array', items: {}, maxItems: 200 }) }
const longText = orNull({ type: 'string', maxLength: 10_000 })
const shortText = orNull({ type: 'string', maxLength: 100 })

export const experimentResource = {
  table: 'experiment',
  required: ['name', 'feature_flag_key'],
  keepsDeleted: true,
  fields: {
    /** Instance-wide, ascending from 1, never reused. */
    id: integerField('id'),
    projectId: integerField('project_id', { isShown: false }),
    name: textField('name', { schema: nameSchema(400) }),
    flagId: integerField('feature_flag_id', { isShown: false }),
    /** True when the flag was made for the experiment; false when it existed before and may have other uses. */
    flagIsOwn: booleanField('owns_flag', { isShown: false }),
    /** Kept and returned as it was sent. */
    content: membersField('content', {
      description: { schema: longText, shown: '' },
      type: { schema: shortText },
      parameters: {
        schema: anyObject('`feature_flag_variants` and other fields configure the flag; payloads are not stored here.'),
        shown: {},
      },
      metrics: { ...list, shown: [] },
      metrics_secondary: { ...list, shown: [] },
      secondary_metrics: { ...list, shown: [] },
      saved_metrics_ids: list,
      filters: { schema: anyObject(), shown: {} },
      exposure_criteria: { schema: anyObject() },
      stats_config: { schema: anyObject() },
      conclusion: { schema: shortText },
      conclusion_comment: { schema: longText },
    }),
    /** Null for a draft. */
    startDateMs: nullable(instantField('start_date', { schema: instantSchema })),
    endDateMs: nullable(instantField('end_date', { schema: instantSchema })),
    archived: booleanField('archived', { schema: { type: 'boolean' }, initial: false }),
    createdAtMs: instantField('created_at'),
    updatedAtMs: instantField('updated_at'),
    createdBy: nullable(authorField('created_by')),
  },
} as const

export type Experiment = ItemOf<typeof experimentResource>
