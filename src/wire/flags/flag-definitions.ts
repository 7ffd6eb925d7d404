// The definitions that SDKs evaluate locally, in a form that typed clients of every age can read: lists never null,
// percentages without a needless fraction, payloads as text, dependencies by key. What cannot be read here is left out,
// so that clients ask the server for that flag. Source: docs/wire/evaluation.md 7.1; docs/wire/clients.md 7.

import { cohortIdOf, isCohortGroup } from '#core/flags/definitions/cohort-tree.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { findDependencyChain, parseDependencyId } from '#core/flags/definitions/flag-dependencies.ts'
import { readStoredFilters } from '#core/flags/definitions/flag-filters.ts'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { CohortGraph, type CohortNode } from '#core/flags/evaluation/cohort-graph.ts'
import { readPayloadText } from '#core/flags/evaluation/prepared-outcomes.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber, setOwnValue } from '#core/json.ts'
import { isSurveyFlagKey } from '#core/surveys/survey-flags.ts'
import { hasMinimalFlagCalledEvents } from '../browser/client-config.ts'
import type { WireName } from '../wire-name.ts'

/**
 * The whole body, in steps: one for each flag, in the order of keys, and one for each cohort, so that the caller can
 * pause in between when there are thousands.
 */
export function* encodeDefinitions(definitions: ProjectDefinitions): Generator<void, string> {
  // Survey flags are left out: browsers ask the server for them, and no SDK evaluates them locally. Flags of version 2 are
  // left out, too: SDKs would mistake such a definition for a flag that is off, while they ask the server about a key that
  // they do not know.
  const existing = definitions.flags.filter(
    flag =>
      !flag.deleted &&
      !flag.hasEncryptedPayloads &&
      !isSurveyFlagKey(flag.key) &&
      readConfigVersion(flag.filters) === 1,
  )
  const cohorts = new CohortGraph(definitions.cohorts)
  const rewrite = createDependencyRewrite(existing, cohorts)
  const flagTexts: string[] = []
  const cohortIds = new Set<number>()
  for (const flag of existing.toSorted((a, b) => (a.key < b.key ? -1 : 1))) {
    const filters = encodeFilters(flag, rewrite)
    if (filters === null) continue
    for (const id of findReferences(flag).cohortIds) cohortIds.add(id)
    flagTexts.push(JSON.stringify(encodeFlag(flag, filters)))
    yield
  }
  const cohortTexts: string[] = []
  for (const id of listReachedCohorts(cohortIds, cohorts)) {
    const text = encodeCohort(cohorts.node(id)!, rewrite)
    if (text !== null) cohortTexts.push(text)
    yield
  }
  const groupTypes = Object.fromEntries(definitions.groupTypes.map(type => [String(type.index), type.name]))
  return (
    `{"flags":[${flagTexts.join(',')}],` +
    `"group_type_mapping":${JSON.stringify(groupTypes)},"cohorts":{${cohortTexts.join(',')}},` +
    `"property_matching_version":${definitions.project.propertyMatchingVersion}` +
    `${hasMinimalFlagCalledEvents(definitions.project.clientSettings) ? ',"minimal_flag_called_events":true' : ''}}`
  )
}

/**
 * The list of flags that SDKs from before 2022 ask for first, in steps like `encodeDefinitions`. These SDKs compute the
 * value of a flag that the list calls simple from its percentage, and ask `/decide/` for any other flag. The list calls no
 * flag simple: posthog-node 1.3 looks for the percentage under another name and would turn a simple flag on for everyone,
 * while the server's answer is always right. Source: docs/wire/clients.md 2, 3; docs/wire/evaluation.md 11.4.
 */
export function* encodeFlagList(definitions: ProjectDefinitions): Generator<void, string> {
  const listed = definitions.flags.filter(
    flag => !flag.deleted && !isSurveyFlagKey(flag.key) && readConfigVersion(flag.filters) === 1,
  )
  const texts: string[] = []
  for (const { id, key, name, active } of listed.toSorted((a, b) => (a.key < b.key ? -1 : 1))) {
    texts.push(JSON.stringify({ id, key, name, active, is_simple_flag: false, rollout_percentage: null }))
    yield
  }
  return `{"count":${texts.length},"next":null,"previous":null,"results":[${texts.join(',')}]}`
}

type DependencyRewrite = (id: number) => { readonly key: string | undefined; readonly chain: readonly string[] }

/** Marks filters that test a flag, in the form for clients. Dependencies may also lead through cohorts. */
function createDependencyRewrite(flags: readonly Flag[], cohorts: CohortGraph): DependencyRewrite {
  const byId = new Map(flags.map(flag => [flag.id, flag]))
  const testedBy = new Map<number, readonly number[]>()
  const findTestedIds = (id: number): readonly number[] | undefined => {
    const flag = byId.get(id)
    if (flag === undefined) return undefined
    const known = testedBy.get(id)
    if (known !== undefined) return known
    const ids = listTestedIds(flag, cohorts)
    testedBy.set(id, ids)
    return ids
  }
  return id => {
    const chain = findDependencyChain(id, findTestedIds).map(link => byId.get(link)!.key)
    return { key: byId.get(id)?.key, chain }
  }
}

/** These cohorts and all existing cohorts that they refer to, by ascending id. */
function listReachedCohorts(cohortIds: ReadonlySet<number>, cohorts: CohortGraph): number[] {
  const reached = new Set<number>()
  const open = [...cohortIds]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    cohorts.reach(id)
    const node = cohorts.node(id)
    if (node === undefined || reached.has(id)) continue
    reached.add(id)
    for (const other of node.tree?.cohortIds ?? []) open.push(other)
  }
  return [...reached].sort((a, b) => a - b)
}

/**
 * Null for a cohort that clients do not get: a static cohort, or a cohort that fails every flag that asks for it. Clients
 * would take an empty tree to include everyone, and would follow a cycle for ever.
 */
function encodeCohort({ cohort, tree, fault }: CohortNode, rewrite: DependencyRewrite): string | null {
  if (tree === null || fault !== null) return null
  const top = getOwnValue(cohort.filters, 'properties') as JsonObject
  return `"${cohort.id}":${JSON.stringify(encodeGroup(top, rewrite))}`
}

/** Recurses as deep as the tree; readable trees have bounded depth. */
function encodeGroup(group: JsonObject, rewrite: DependencyRewrite): JsonObject {
  const values = toList(getOwnValue(group, 'values')).map(value => {
    const entry = value as JsonObject
    return isCohortGroup(entry) ? encodeGroup(entry, rewrite) : encodeFilter(entry, rewrite)
  })
  return replaceMembers(group, { values })
}

/** Fields of a flag that are not for clients. Every other field has to be in `encodeFlag`. */
type Withheld =
  | 'archived'
  | 'hasEncryptedPayloads'
  | 'isRemoteConfiguration'
  | 'tags'
  | 'createdAtMs'
  | 'updatedAtMs'
  | 'conditionsSinceMs'
  | 'createdBy'
type GivenName = WireName<Exclude<keyof Flag, Withheld | 'projectId'>> | 'team_id'

function encodeFlag(flag: Flag, filters: JsonObject): Record<GivenName, unknown> {
  return {
    id: flag.id,
    team_id: flag.projectId,
    name: flag.name,
    key: flag.key,
    filters,
    deleted: false,
    active: flag.active,
    ensure_experience_continuity: flag.ensureExperienceContinuity,
    version: flag.version,
    evaluation_runtime: flag.evaluationRuntime,
    evaluation_contexts: flag.evaluationContexts,
    bucketing_identifier: flag.bucketingIdentifier,
    has_experiment: flag.hasExperiment,
  }
}

/** The flags that a flag tests; none for an inactive flag, which is false in any case. */
function listTestedIds(flag: Flag, cohorts: CohortGraph): readonly number[] {
  if (!flag.active) return []
  const { flagIds, cohortIds } = findReferences(flag)
  const ids = new Set(flagIds)
  for (const cohortId of cohortIds) {
    cohorts.reach(cohortId)
    for (const id of cohorts.flagIdsFrom(cohortId)) ids.add(id)
  }
  return [...ids]
}

/** The flags and cohorts to which the filters in a flag's condition sets refer. */
function findReferences(flag: Flag): { readonly flagIds: readonly number[]; readonly cohortIds: readonly number[] } {
  const flagIds: number[] = []
  const cohortIds: number[] = []
  for (const set of toList(getOwnValue(flag.filters, 'groups'))) {
    for (const filter of toList(readMember(set, 'properties'))) {
      if (!isJsonObject(filter)) continue
      const flagId = readTestedFlagId(filter)
      if (flagId !== null) flagIds.push(flagId)
      const cohortId =
        getOwnValue(filter, 'type') === 'cohort' ? cohortIdOf(getOwnValue(filter, 'value') ?? null) : null
      if (cohortId !== null) cohortIds.push(cohortId)
    }
  }
  return { flagIds, cohortIds }
}

/** Null for filters that the evaluator cannot read either. */
function encodeFilters(flag: Flag, rewrite: DependencyRewrite): JsonObject | null {
  try {
    readStoredFilters(flag.filters)
  } catch {
    // The fault was logged when the project was compiled. The client asks the server, which leaves the flag out as well.
    return null
  }
  const multivariate = getOwnValue(flag.filters, 'multivariate')
  const payloads = getOwnValue(flag.filters, 'payloads')
  return replaceMembers(flag.filters, {
    groups: toList(getOwnValue(flag.filters, 'groups')).map(set => encodeSet(set as JsonObject, rewrite)),
    ...(isJsonObject(multivariate) ? { multivariate: encodeMultivariate(multivariate) } : {}),
    payloads: isJsonObject(payloads) ? encodePayloads(payloads) : {},
  })
}

function encodeSet(set: JsonObject, rewrite: DependencyRewrite): JsonObject {
  const filters = toList(getOwnValue(set, 'properties'))
  return replaceMembers(set, {
    properties: filters.map(filter => encodeFilter(filter as JsonObject, rewrite)),
    rollout_percentage: toPlainNumber(getOwnValue(set, 'rollout_percentage')),
  })
}

/** Old clients know no flag ids: a filter on a flag gets the flag's key and the list of flags to evaluate first. */
function encodeFilter(filter: JsonObject, rewrite: DependencyRewrite): JsonObject {
  const id = readTestedFlagId(filter)
  if (id === null) return filter
  const { key, chain } = rewrite(id)
  return replaceMembers(filter, { ...(key === undefined ? {} : { key }), dependency_chain: [...chain] })
}

function encodeMultivariate(multivariate: JsonObject): JsonObject {
  const variants = toList(getOwnValue(multivariate, 'variants')).map(variant =>
    replaceMembers(variant as JsonObject, {
      rollout_percentage: toPlainNumber(readMember(variant, 'rollout_percentage')),
    }),
  )
  return replaceMembers(multivariate, { variants })
}

function encodePayloads(payloads: JsonObject): JsonObject {
  const texts: JsonObject = {}
  for (const valueKey of Object.keys(payloads)) {
    const text = readPayloadText(payloads, valueKey)
    if (typeof text === 'string') setOwnValue(texts, valueKey, text)
  }
  return texts
}

/** Writes `100.0` as `100`: some clients read percentages into integers. */
function toPlainNumber(value: JsonValue | undefined): JsonValue {
  return value === undefined ? null : (readJsonNumber(value) ?? null)
}

function replaceMembers(object: JsonObject, over: JsonObject): JsonObject {
  const copy: JsonObject = {}
  for (const key of Object.keys(object)) setOwnValue(copy, key, object[key]!)
  for (const key of Object.keys(over)) copy[key] = over[key]!
  return copy
}

/** The id of the flag that the filter tests; null when it tests none. */
function readTestedFlagId(filter: JsonObject): number | null {
  const key = getOwnValue(filter, 'key')
  return getOwnValue(filter, 'type') === 'flag' && typeof key === 'string' ? parseDependencyId(key) : null
}

function readMember(value: JsonValue, key: string): JsonValue | undefined {
  return isJsonObject(value) ? getOwnValue(value, key) : undefined
}

function toList(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : []
}
