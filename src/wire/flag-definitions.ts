// The definitions that SDKs evaluate by themselves, as typed clients of every age can read them: lists never null,
// percentages without a fraction they do not need, payloads as text, dependencies by key. What cannot be read here is left
// out, so that a client asks the server for that flag. Source: docs/wire/evaluation.md 7.1; docs/wire/clients.md 7.

import { payloadText } from '#core/flags/compile-flag.ts'
import type { Flag } from '#core/flags/flag.ts'
import { dependencyChain, dependencyId } from '#core/flags/flag-dependencies.ts'
import { readFilters } from '#core/flags/flag-filters.ts'
import type { ProjectDefinitions } from '#core/flags/project-definitions.ts'
import { isJsonObject, type JsonObject, type JsonValue, numberOf, ownValue, setOwn } from '#core/json.ts'

export interface DefinitionsEncoder {
  /** How many flags there are to encode. */
  readonly flagCount: number
  /** One flag's JSON text, '' for one that clients are not given. By index, in the order of keys. */
  encodeFlag(index: number): string
  /** The whole body around the texts of all flags. */
  finish(flagTexts: readonly string[]): string
}

/** Flag by flag, so that whoever prepares a project with thousands can pause between them. */
export function definitionsEncoder(definitions: ProjectDefinitions): DefinitionsEncoder {
  const existing = definitions.flags.filter(flag => !flag.deleted && !flag.hasEncryptedPayloads)
  const ordered = existing.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  const byId = new Map(existing.map(flag => [flag.id, flag]))
  const testedBy = new Map<number, readonly number[]>()
  const testedIds = (id: number): readonly number[] | undefined => {
    const flag = byId.get(id)
    if (flag === undefined) return undefined
    const known = testedBy.get(id)
    if (known !== undefined) return known
    const ids = idsTestedBy(flag)
    testedBy.set(id, ids)
    return ids
  }
  const rewrite: DependencyRewrite = id => {
    const chain = dependencyChain(id, testedIds).map(link => byId.get(link)!.key)
    return { key: byId.get(id)?.key, chain }
  }
  return {
    flagCount: ordered.length,
    encodeFlag: index => {
      const flag = ordered[index]!
      const filters = filtersForClients(flag, rewrite)
      return filters === null ? '' : JSON.stringify(encodeFlag(flag, filters))
    },
    finish: flagTexts => {
      const groupTypes = Object.fromEntries(definitions.groupTypes.map(type => [String(type.index), type.name]))
      return (
        `{"flags":[${flagTexts.filter(text => text !== '').join(',')}],` +
        `"group_type_mapping":${JSON.stringify(groupTypes)},"cohorts":{},` +
        `"property_matching_version":${definitions.project.propertyMatchingVersion}}`
      )
    },
  }
}

function encodeFlag(flag: Flag, filters: JsonObject): object {
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

/** An inactive flag is false whatever it tests. */
function idsTestedBy(flag: Flag): number[] {
  if (!flag.active) return []
  const ids: number[] = []
  for (const set of listOf(ownValue(flag.filters, 'groups'))) {
    for (const filter of listOf(memberOf(set, 'properties'))) {
      const id = isJsonObject(filter) ? testedFlagId(filter) : null
      if (id !== null) ids.push(id)
    }
  }
  return ids
}

type DependencyRewrite = (id: number) => { readonly key: string | undefined; readonly chain: readonly string[] }

/** Null for filters whose shape the evaluator does not read either. */
function filtersForClients(flag: Flag, rewrite: DependencyRewrite): JsonObject | null {
  try {
    readFilters(flag.filters)
  } catch {
    // Logged when the project was compiled; the client asks the server, which leaves the flag out as well.
    return null
  }
  const multivariate = ownValue(flag.filters, 'multivariate')
  const payloads = ownValue(flag.filters, 'payloads')
  return replaced(flag.filters, {
    groups: listOf(ownValue(flag.filters, 'groups')).map(set => setForClients(set as JsonObject, rewrite)),
    ...(isJsonObject(multivariate) ? { multivariate: multivariateForClients(multivariate) } : {}),
    payloads: isJsonObject(payloads) ? textPayloads(payloads) : {},
  })
}

function setForClients(set: JsonObject, rewrite: DependencyRewrite): JsonObject {
  const filters = listOf(ownValue(set, 'properties'))
  return replaced(set, {
    properties: filters.map(filter => filterForClients(filter as JsonObject, rewrite)),
    rollout_percentage: shortNumber(ownValue(set, 'rollout_percentage')),
  })
}

/** Old clients know no ids: a dependency names the other flag by its key, and what to evaluate before it. */
function filterForClients(filter: JsonObject, rewrite: DependencyRewrite): JsonObject {
  const id = testedFlagId(filter)
  if (id === null) return filter
  const { key, chain } = rewrite(id)
  return replaced(filter, { ...(key === undefined ? {} : { key }), dependency_chain: [...chain] })
}

function multivariateForClients(multivariate: JsonObject): JsonObject {
  const variants = listOf(ownValue(multivariate, 'variants')).map(variant =>
    replaced(variant as JsonObject, { rollout_percentage: shortNumber(memberOf(variant, 'rollout_percentage')) }),
  )
  return replaced(multivariate, { variants })
}

function textPayloads(payloads: JsonObject): JsonObject {
  const texts: JsonObject = {}
  for (const valueKey of Object.keys(payloads)) {
    const text = payloadText(payloads, valueKey)
    if (typeof text === 'string') setOwn(texts, valueKey, text)
  }
  return texts
}

/** `100.0` as `100`: some clients read percentages into integers. */
function shortNumber(value: JsonValue | undefined): JsonValue {
  return value === undefined ? null : (numberOf(value) ?? null)
}

function replaced(object: JsonObject, over: JsonObject): JsonObject {
  const copy: JsonObject = {}
  for (const key of Object.keys(object)) setOwn(copy, key, object[key]!)
  for (const key of Object.keys(over)) copy[key] = over[key]!
  return copy
}

/** Null: the filter tests no flag. */
function testedFlagId(filter: JsonObject): number | null {
  const key = ownValue(filter, 'key')
  return ownValue(filter, 'type') === 'flag' && typeof key === 'string' ? dependencyId(key) : null
}

function memberOf(value: JsonValue, key: string): JsonValue | undefined {
  return isJsonObject(value) ? ownValue(value, key) : undefined
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : []
}
