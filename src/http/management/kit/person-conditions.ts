// Filters of persons on properties and cohorts, which are tested person by person like flag conditions.

import Type from 'typebox'
import { listReferencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { validateFlag } from '#core/flags/definitions/validate-flag.ts'
import { findReferenceIssuesOf } from '#core/flags/definitions/validate-references.ts'
import type { UnknownReason } from '#core/flags/evaluation/flag-outcome.ts'
import { createConditionProbe, type FlagProbe } from '#core/flags/evaluation/flag-probe.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { createInvalidError, createInvalidInputError, stateUnavailable } from './answers.ts'
import { type Caller, createMissingScopeError, hasScope } from './authenticate.ts'
import type { ManagementDeps } from './deps.ts'
import { asFilter } from './list-filters.ts'
import { readFilterList } from './property-filters.ts'
import { filterParam, type QueryParam, type QueryValues, textParam, wholeNumberParam } from './query-params.ts'

const types: readonly JsonValue[] = ['person', 'person_metadata', 'cohort']

export const personConditions = {
  email: textParam('The property `email`, case-insensitive.'),
  cohort: asFilter(
    wholeNumberParam({ description: 'Members of the cohort with this id. Requires `cohort:read`.', minimum: 1 }),
  ),
  properties: personPropertiesParam(),
}

/** The query's conditions as a flag that is evaluated for each person (a probe); null without conditions. */
export async function readPersonCondition(
  { management, servedProject }: ManagementDeps,
  caller: Caller,
  project: Project,
  query: QueryValues<typeof personConditions>,
): Promise<Result<FlagProbe | null, WireError>> {
  const { email, cohort, properties = [] } = query
  const filters: { readonly filter: JsonObject; readonly name: string }[] = properties.map((filter, index) => {
    return { filter, name: `properties.${index}` }
  })
  if (email !== undefined) filters.push({ filter: { key: 'email', type: 'person', value: email }, name: 'email' })
  if (cohort !== undefined) filters.push({ filter: { key: 'id', type: 'cohort', value: cohort }, name: 'cohort' })
  if (filters.length === 0) return ok(null)
  const condition: JsonObject = { groups: [{ properties: filters.map(({ filter }) => filter) }] }
  // Checks only references to cohorts: a group type in a person filter has no meaning.
  const references = listReferencesOfFlag(condition).filter(({ kind }) => kind === 'cohort')
  if (references.length > 0) {
    if (!hasScope(caller, 'cohort:read'))
      return err(createMissingScopeError('cohort:read', 'A filter refers to a cohort.'))
    const links = await management.findLinks(project.id)
    const [issue] = findReferenceIssuesOf({ kind: 'flag', id: null, name: 'filter' }, references, links)
    if (issue !== undefined) {
      const [, index] = /^filters\.groups\.0\.properties\.(\d+)/.exec(issue.path)!
      const { name } = filters[Number(index)]!
      return err(wireError(400, issue.code, issue.message, name === 'cohort' ? name : `${name}.value`))
    }
  }
  const served = servedProject(project.id)
  if (served === null) return err(stateUnavailable)
  const probe = createConditionProbe(
    served.definitions,
    filters.map(({ filter }) => filter),
  )
  const fault = probe.fault()
  return fault === null ? ok(probe) : err(createNotEvaluableError(fault))
}

/**
 * The error for a condition on a cohort that cannot be evaluated; nothing else makes a condition impossible to evaluate.
 */
export function createNotEvaluableError(reason: UnknownReason): WireError {
  return createInvalidInputError('properties', `The filters cannot be evaluated: ${reason}.`)
}

function personPropertiesParam(): QueryParam<readonly JsonObject[] | undefined> {
  const description =
    'JSON list of filters, all of which must match, with the operators of flags: [{"key": "plan", "operator": "exact", "value": "pro", "type": "person"}]. Types are person (default), person_metadata and cohort, which requires `cohort:read`.'
  return filterParam(Type.String({ description, minLength: 2 }), readProperties)
}

function readProperties(text: string, name: string): Result<readonly JsonObject[], WireError> {
  const sent = readFilterList(text, name, '[{"key": "plan", "value": "pro", "type": "person"}]')
  if (!sent.ok) return sent
  const filters: JsonObject[] = []
  for (const [index, filter] of sent.value.entries()) {
    if (!isJsonObject(filter))
      return err(createInvalidError(`${name}.${index}`, 'A filter must be an object with key and value.'))
    const type = getOwnValue(filter, 'type') ?? 'person'
    if (!types.includes(type))
      return err(
        createInvalidInputError(`${name}.${index}.type`, `The type of a filter must be one of ${types.join(', ')}.`),
      )
    filters.push({ ...filter, type })
  }
  const [issue] = validateFlag({ filters: { groups: [{ properties: filters }] } })
  return issue === undefined ? ok(filters) : err(toConditionError(issue, name))
}

function toConditionError({ path, code, message }: FlagIssue, name: string): WireError {
  return wireError(400, code, message, path.replace(/^filters\.groups\.0\.properties/, name))
}
