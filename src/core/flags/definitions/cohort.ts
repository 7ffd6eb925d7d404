// A cohort as stored: a set of persons, either listed (static) or described by a tree of filters (dynamic). `filters`
// stays JSON, because stored definitions may be older than our validation or have skipped it.

import { diffJson } from '../../json-diff.ts'
import {
  authorField,
  booleanField,
  type ItemOf,
  instantField,
  integerField,
  nullable,
  objectField,
  orNull,
  storeInColumn,
  textField,
} from '../../resource.ts'

const declareText = (maxLength: number) => ({ schema: orNull({ type: 'string', maxLength }), initial: '' })

export const cohortResource = {
  table: 'cohort',
  required: [],
  fields: {
    /** Instance-wide, ascending from 1, never reused; filters of flags and of other cohorts refer to this id. */
    id: integerField('id'),
    projectId: integerField('project_id', { isShown: false }),
    name: textField('name', declareText(400)),
    description: textField('description', declareText(1_000)),
    /** True when the members are stored rows; `filters` then mean nothing. */
    isStatic: booleanField('is_static', { schema: { type: 'boolean' }, initial: false }),
    /** `{properties: {type, values}}`. Source: docs/wire/evaluation.md 5.11. */
    filters: objectField('filters', {
      schema: orNull({
        type: 'object',
        description:
          'Of a cohort that is not static: `{"properties": {"type": "OR" | "AND", "values": [filters and groups of filters]}}`.',
      }),
      initial: {},
    }),
    deleted: booleanField('deleted', { schema: { type: 'boolean' }, initial: false }),
    version: integerField('version'),
    /** The number of members at `countedAtMs`; null when not counted yet. */
    memberCount: nullable(storeInColumn('member_count', integerField('count'))),
    countedAtMs: nullable(storeInColumn('counted_at', instantField('last_calculation'))),
    createdAtMs: instantField('created_at'),
    updatedAtMs: instantField('updated_at'),
    createdBy: nullable(authorField('created_by')),
  },
} as const

export type Cohort = ItemOf<typeof cohortResource>

/** Whether a change leaves everything that writers decide unchanged; such a change makes no version. */
export function isSameCohort(before: Cohort, after: Cohort): boolean {
  return (
    before.name === after.name &&
    before.description === after.description &&
    before.deleted === after.deleted &&
    diffJson(before.filters, after.filters).length === 0
  )
}
