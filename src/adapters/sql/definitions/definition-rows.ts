// Converts rows to values and back for a project's definitions other than flags; `rows.ts` has the rest.

import type { Selectable } from 'kysely'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import { authorOf, authorText, flagBit, jsonObjectOf, jsonText } from '../tables/rows.ts'
import type { CohortTable } from '../tables/schema.ts'

export function cohortOf(row: Selectable<CohortTable>): Cohort {
  return {
    id: Number(row.id),
    projectId: Number(row.project_id),
    name: row.name,
    description: row.description,
    isStatic: row.is_static === 1,
    filters: jsonObjectOf(row.filters),
    deleted: row.deleted === 1,
    version: Number(row.version),
    memberCount: toNumberOrNull(row.member_count),
    countedAtMs: toNumberOrNull(row.counted_at),
    createdAtMs: Number(row.created_at),
    updatedAtMs: Number(row.updated_at),
    createdBy: authorOf(row.created_by),
  }
}

export function cohortRowOf(cohort: Cohort): Selectable<CohortTable> {
  return {
    id: cohort.id,
    project_id: cohort.projectId,
    name: cohort.name,
    description: cohort.description,
    is_static: flagBit(cohort.isStatic),
    filters: jsonText(cohort.filters),
    deleted: flagBit(cohort.deleted),
    version: cohort.version,
    member_count: cohort.memberCount,
    counted_at: cohort.countedAtMs,
    created_at: cohort.createdAtMs,
    updated_at: cohort.updatedAtMs,
    created_by: authorText(cohort.createdBy),
  }
}

/** A PostgreSQL driver may hand out BIGINT as text. */
export function toNumberOrNull(value: number | null): number | null {
  return value === null ? null : Number(value)
}
