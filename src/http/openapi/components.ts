// The OpenAPI document's named components: each resource schema once, under a name that generated clients can use.
// Schemas are matched by identity, so `wire/management` need not know their names in the document.

import type { TSchema } from 'typebox'
import { activitySchema } from '#wire/management/activity.ts'
import { authorSchema } from '#wire/management/author.ts'
import { eventDefinitionSchema, propertyDefinitionSchema } from '#wire/management/definitions.ts'
import {
  eventSchema,
  rejectedEventSchema,
  rejectReplayReportSchema,
  rejectReplaySchema,
} from '#wire/management/events.ts'
import { createExperimentSchema, experimentSchema, updateExperimentSchema } from '#wire/management/experiments.ts'
import {
  createEarlyAccessFeatureSchema,
  earlyAccessFeatureSchema,
  updateEarlyAccessFeatureSchema,
} from '#wire/management/flags/early-access.ts'
import { explanationSchema } from '#wire/management/flags/explanation-shapes.ts'
import {
  createFlagSchema,
  flagActivitySchema,
  flagDiffSchema,
  flagSchema,
  flagVersionSchema,
  updateFlagSchema,
  writtenFlagSchema,
} from '#wire/management/flags/flags.ts'
import { createdPersonalKeySchema, createPersonalKeySchema, personalKeySchema } from '#wire/management/keys.ts'
import { linkedFlagSchema } from '#wire/management/linked-flag.ts'
import {
  cohortSchema,
  createCohortSchema,
  updateCohortSchema,
  writtenCohortSchema,
} from '#wire/management/persons/cohorts.ts'
import { groupSchema, groupTypeSchema } from '#wire/management/persons/groups.ts'
import { personSchema } from '#wire/management/persons/persons.ts'
import { createProjectSchema, projectSchema, updateProjectSchema } from '#wire/management/projects.ts'
import { replayMessageSchema } from '#wire/management/replay-messages.ts'
import { ingestionStatusSchema, usageSchema, warningsSchema } from '#wire/management/status.ts'
import { surveyStatsSchema, surveysStatsSchema } from '#wire/management/survey-stats.ts'
import { createSurveySchema, surveySchema, updateSurveySchema } from '#wire/management/surveys.ts'
import { organizationSchema, userSchema } from '#wire/management/users.ts'
import { describedShapes, type Json, ref } from './shapes.ts'

const named: Readonly<Record<string, TSchema>> = {
  Activity: activitySchema,
  Author: removeNull(authorSchema),
  Cohort: cohortSchema,
  CohortChange: updateCohortSchema,
  CreatedPersonalApiKey: createdPersonalKeySchema,
  EarlyAccessFeature: earlyAccessFeatureSchema,
  EarlyAccessFeatureChange: updateEarlyAccessFeatureSchema,
  Event: eventSchema,
  EventDefinition: eventDefinitionSchema,
  Experiment: experimentSchema,
  ExperimentChange: updateExperimentSchema,
  Explanation: explanationSchema,
  FeatureFlag: flagSchema,
  FeatureFlagActivity: flagActivitySchema,
  FeatureFlagChange: updateFlagSchema,
  FeatureFlagDiff: flagDiffSchema,
  FeatureFlagVersion: flagVersionSchema,
  Group: groupSchema,
  GroupType: groupTypeSchema,
  IngestionStatus: ingestionStatusSchema,
  IngestionWarnings: warningsSchema,
  LinkedFeatureFlag: linkedFlagSchema,
  NewCohort: createCohortSchema,
  NewEarlyAccessFeature: createEarlyAccessFeatureSchema,
  NewExperiment: createExperimentSchema,
  NewFeatureFlag: createFlagSchema,
  NewPersonalApiKey: createPersonalKeySchema,
  NewProject: createProjectSchema,
  NewSurvey: createSurveySchema,
  Organization: organizationSchema,
  Person: personSchema,
  PersonalApiKey: personalKeySchema,
  Project: projectSchema,
  ProjectChange: updateProjectSchema,
  PropertyDefinition: propertyDefinitionSchema,
  Quotas: getProperty(projectSchema, 'quotas'),
  RejectedEvent: rejectedEventSchema,
  RejectReplay: rejectReplaySchema,
  RejectReplayReport: rejectReplayReportSchema,
  ReplayMessage: replayMessageSchema,
  Survey: surveySchema,
  SurveyChange: updateSurveySchema,
  SurveyStats: surveyStatsSchema,
  SurveysStats: surveysStatsSchema,
  Usage: usageSchema,
  User: userSchema,
  WrittenCohort: writtenCohortSchema,
  WrittenFeatureFlag: writtenFlagSchema,
}

function getProperty(schema: TSchema, name: string): TSchema {
  return (schema as TSchema & { readonly properties: Readonly<Record<string, TSchema>> }).properties[name]!
}

/** Objects whose contents are checked by validators of the core; the document describes these contents. */
const described: readonly [TSchema, string][] = [
  ...[flagSchema, createFlagSchema, updateFlagSchema].map((schema): [TSchema, string] => [
    removeNull(schema.properties.filters),
    'FlagFilters',
  ]),
  [removeNull(linkedFlagSchema.properties.filters), 'FlagFilters'],
  [removeNull(getProperty(updateSurveySchema, 'targeting_flag_filters')), 'FlagFilters'],
  [removeNull(getProperty(updateSurveySchema, 'conditions')), 'SurveyConditions'],
  [removeNull(getProperty(surveySchema, 'conditions')), 'SurveyConditions'],
  [removeNull(getProperty(experimentSchema, 'parameters')), 'ExperimentParameters'],
  [getProperty(cohortSchema, 'filters'), 'CohortFilters'],
  [removeNull(getProperty(createCohortSchema, 'filters')), 'CohortFilters'],
  ...[surveySchema, updateSurveySchema].map((schema): [TSchema, string] => [
    (removeNull(getProperty(schema, 'questions')) as unknown as { items: TSchema }).items,
    'SurveyQuestion',
  ]),
]

const nameOf = new Map<unknown, string>([
  ...Object.entries(named).map(([name, schema]): [unknown, string] => [schema, name]),
  ...described,
])

/** Removes null from the schema of a value that may be null. */
function removeNull(schema: TSchema): TSchema {
  return 'anyOf' in schema ? (schema.anyOf as TSchema[])[0]! : schema
}

/** The schema as the document shows it, with references to the components in it. */
export function toDocumentedSchema(schema: unknown): Json {
  const name = nameOf.get(schema)
  return name === undefined ? (documentMembers(schema) as Json) : ref(name)
}

export function buildComponentSchemas(): Record<string, Json> {
  const schemas: Record<string, Json> = { ...describedShapes }
  for (const [name, schema] of Object.entries(named)) schemas[name] = documentMembers(schema) as Json
  return Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function documentMembers(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(toDocumentedSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, toDocumentedSchema(value)]))
}
