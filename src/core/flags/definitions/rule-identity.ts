// Who a rule of a version 2 document is: its id, and the seeds that decide who is in its rollout, its variants and its
// holdout. They are the service's: a caller sends them back and never chooses them, so that no edit moves people between
// buckets by accident. Source: docs/wire/private-api.md 4.3.

import { isJsonObject, type JsonObject, type JsonValue, mergeObjects, numberOf, ownValue } from '../../json.ts'
import { err, ok, type Result } from '../../result.ts'
import type { FlagIssue } from './flag-issue.ts'

const seededTypes: readonly unknown[] = ['percentage_rollout', 'experiment']

/**
 * The document with an id for each rule, and seeds where its type has some: those that the stored document has under the
 * rule's id, wherever the rule stands now, else new ones. What is no rule stays as it is, for the reader to refuse.
 * @param stored null for a new flag.
 * @returns the first id or seed that is not the stored document's.
 */
export function identifyRules(
  filters: JsonObject,
  stored: JsonObject | null,
  newUuid: () => string,
): Result<JsonObject, FlagIssue> {
  const storedRules = rulesById(stored)
  const taken = new Set<JsonValue>()
  let fault: FlagIssue | undefined
  const refuse = (path: string, message: string) => {
    fault ??= { path, code: 'invalid_input', message }
  }
  /** @returns the object with its seed. */
  const withSeed = (object: JsonObject, before: JsonValue | undefined, path: string): JsonObject => {
    const sent = ownValue(object, 'seed')
    const known = isJsonObject(before) ? ownValue(before, 'seed') : undefined
    if (sent !== undefined && sent !== known) {
      refuse(`${path}.seed`, 'Seeds are given by the service: leave it out, or send back the one that this rule has.')
    }
    return sent === undefined ? mergeObjects(object, { seed: known ?? newUuid() }) : object
  }
  const identified = mapRules(filters, (sent, index) => {
    const path = `filters.rules.${index}`
    const id = ownValue(sent, 'id')
    const before = id === undefined ? undefined : storedRules.get(id)
    if (id !== undefined && before === undefined)
      refuse(`${path}.id`, 'Ids are given by the service: leave it out for a new rule, or send one that the flag has.')
    else if (id !== undefined && taken.has(id)) refuse(`${path}.id`, 'Two rules have this id.')
    if (id !== undefined) taken.add(id)
    const rule = id === undefined ? mergeObjects({ id: newUuid() }, sent) : sent
    return withSeeds(rule, (object, part) =>
      part === 'rule'
        ? withSeed(object, before, path)
        : withSeed(object, before && ownValue(before, 'holdout'), `${path}.holdout`),
    )
  })
  return fault === undefined ? ok(identified) : err(fault)
}

/**
 * The document for a copy of its flag in another project. Rules keep their ids, by which a later copy finds them again.
 * @param there the document of the flag that has the same key there: its seeds stay where it has the rule, so that nobody
 * there changes buckets. Null where there is none: then all seeds are new, so that the copy decides independently.
 */
export function rulesForCopy(filters: JsonObject, there: JsonObject | null, newUuid: () => string): JsonObject {
  const rulesThere = rulesById(there)
  return mapRules(filters, rule => {
    const counterpart = rulesThere.get(ownValue(rule, 'id') ?? null)
    return withSeeds(rule, (object, part) => {
      const its = part === 'rule' ? counterpart : counterpart && ownValue(counterpart, 'holdout')
      const seed = isJsonObject(its) ? ownValue(its, 'seed') : undefined
      const own = there === null ? newUuid() : (ownValue(object, 'seed') ?? newUuid())
      return mergeObjects(object, { seed: seed ?? own })
    })
  })
}

/**
 * The document with the experiments, and ids of holdouts, that the rules of the same ids have in another document. The others
 * become splits without an experiment: experiments belong to one project, and who gets which variant hangs on seeds alone.
 * @param other null where there is no such document.
 */
export function withExperimentsOf(filters: JsonObject, other: JsonObject | null): JsonObject {
  const otherRules = rulesById(other)
  return mapRules(filters, rule => {
    if (!isIdOrNull(ownValue(rule, 'experiment_id'))) return rule
    const counterpart = otherRules.get(ownValue(rule, 'id') ?? null) ?? {}
    const [holdout, its] = [ownValue(rule, 'holdout'), ownValue(counterpart, 'holdout')]
    return mergeObjects(rule, {
      experiment_id: ownValue(counterpart, 'experiment_id') ?? null,
      ...(isJsonObject(holdout) &&
        isIdOrNull(ownValue(holdout, 'id')) && {
          holdout: mergeObjects(holdout, { id: (isJsonObject(its) ? ownValue(its, 'id') : null) ?? null }),
        }),
    })
  })
}

function isIdOrNull(value: JsonValue | undefined): boolean {
  return value === null || (value !== undefined && Number.isSafeInteger(numberOf(value)))
}

/** The document with other rules; what is no rule stays as it is. */
function mapRules(filters: JsonObject, change: (rule: JsonObject, index: number) => JsonObject): JsonObject {
  const rules = ownValue(filters, 'rules')
  if (!Array.isArray(rules)) return filters
  return mergeObjects(filters, { rules: rules.map((rule, index) => (isJsonObject(rule) ? change(rule, index) : rule)) })
}

function withSeeds(rule: JsonObject, seeded: (object: JsonObject, part: 'rule' | 'holdout') => JsonObject): JsonObject {
  if (!seededTypes.includes(ownValue(rule, 'rule_type'))) return rule
  const holdout = ownValue(rule, 'holdout')
  const changed = seeded(rule, 'rule')
  return isJsonObject(holdout) ? mergeObjects(changed, { holdout: seeded(holdout, 'holdout') }) : changed
}

function rulesById(filters: JsonObject | null): ReadonlyMap<JsonValue, JsonObject> {
  const rules = filters === null ? undefined : ownValue(filters, 'rules')
  if (!Array.isArray(rules)) return new Map()
  return new Map(
    rules.filter(isJsonObject).flatMap(rule => {
      const id = ownValue(rule, 'id')
      return typeof id === 'string' ? [[id, rule] as const] : []
    }),
  )
}
