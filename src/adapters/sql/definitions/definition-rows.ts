// Converts rows to values and back for a project's definitions other than flags; `rows.ts` has the rest.

import type { Selectable } from 'kysely'
import type { EarlyAccessFeature, EarlyAccessStage } from '#core/early-access/early-access-feature.ts'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import type { Survey } from '#core/surveys/survey.ts'
import { authorOf, authorText, flagBit, jsonObjectOf, jsonText } from '../tables/rows.ts'
import type { CohortTable, EarlyAccessFeatureTable, SurveyTable } from '../tables/schema.ts'

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

export function earlyAccessFeatureOf(row: Selectable<EarlyAccessFeatureTable>): EarlyAccessFeature {
  return {
    id: row.id,
    projectId: Number(row.project_id),
    flagId: toNumberOrNull(row.feature_flag_id),
    flagIsOwn: row.owns_flag === 1,
    name: row.name,
    description: row.description,
    stage: row.stage as EarlyAccessStage,
    documentationUrl: row.documentation_url,
    payload: jsonObjectOf(row.payload),
    createdAtMs: Number(row.created_at),
    createdBy: authorOf(row.created_by),
  }
}

export function earlyAccessFeatureRowOf(feature: EarlyAccessFeature): Selectable<EarlyAccessFeatureTable> {
  return {
    id: feature.id,
    project_id: feature.projectId,
    feature_flag_id: feature.flagId,
    owns_flag: flagBit(feature.flagIsOwn),
    name: feature.name,
    description: feature.description,
    stage: feature.stage,
    documentation_url: feature.documentationUrl,
    payload: jsonText(feature.payload),
    created_at: feature.createdAtMs,
    created_by: authorText(feature.createdBy),
  }
}

export function surveyOf(row: Selectable<SurveyTable>): Survey {
  return {
    id: row.id,
    projectId: Number(row.project_id),
    name: row.name,
    type: row.type,
    content: jsonObjectOf(row.content),
    linkedFlagId: toNumberOrNull(row.linked_flag_id),
    targetingFlagId: toNumberOrNull(row.targeting_flag_id),
    internalTargetingFlagId: toNumberOrNull(row.internal_targeting_flag_id),
    startDateMs: toNumberOrNull(row.start_date),
    endDateMs: toNumberOrNull(row.end_date),
    archived: row.archived === 1,
    createdAtMs: Number(row.created_at),
    updatedAtMs: Number(row.updated_at),
    createdBy: authorOf(row.created_by),
  }
}

export function surveyRowOf(survey: Survey): Selectable<SurveyTable> {
  return {
    id: survey.id,
    project_id: survey.projectId,
    name: survey.name,
    type: survey.type,
    content: jsonText(survey.content),
    linked_flag_id: survey.linkedFlagId,
    targeting_flag_id: survey.targetingFlagId,
    internal_targeting_flag_id: survey.internalTargetingFlagId,
    start_date: survey.startDateMs,
    end_date: survey.endDateMs,
    archived: flagBit(survey.archived),
    created_at: survey.createdAtMs,
    updated_at: survey.updatedAtMs,
    created_by: authorText(survey.createdBy),
  }
}

/** A PostgreSQL driver may hand out BIGINT as text. */
export function toNumberOrNull(value: number | null): number | null {
  return value === null ? null : Number(value)
}
