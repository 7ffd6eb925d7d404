// Runs situations of flags of version 2 through every place that evaluates them: each kind of answer, explanations,
// probes and the count of who is affected. Source: docs/wire/evaluation.md 11.4, docs/wire/ofrep.md 3.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { FlagProbe } from '#core/flags/evaluation/flag-probe.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import type { Project } from '#core/project.ts'
import { err, ok } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import { type CountReachDeps, countAffectedSubjects, prepareReachQuery } from '#services/scans/count-reach.ts'
import { createSubjectScanQueues } from '#services/scans/subject-scans.ts'
import { emptySubjects, startDecideServer } from '../support/decide-server.ts'
import { aSubject } from '../support/evaluation-subject.ts'
import {
  assertExplained,
  assertOutcome,
  explained,
  probedOutcome,
  type RuleOutcome,
  storedPerson,
} from './rule-agreement.ts'

/** A sentence about a flag, its document, and what a person has of it. */
export type Situation = readonly [sentence: string, filters: JsonObject, outcome: RuleOutcome, distinctId?: string]

export function gives(value: JsonValue, index = 0, reason = 'targeting_match'): RuleOutcome {
  return { reason, index, value, variantKey: null }
}

export function noRule(value: JsonValue): RuleOutcome {
  return { reason: 'no_rule_match', index: null, value, variantKey: null }
}

export function fails(reason: string): RuleOutcome {
  return { reason, index: null, variantKey: null }
}

export interface World {
  /** Of the stored person, which every id has; of the request while stored persons cannot be read. */
  readonly properties: JsonObject
  readonly isStateDown?: boolean
  readonly project?: Partial<Project>
  /** An instant. */
  readonly now?: string
}

/** One subtest for each situation. The distinct id is `ada` unless a situation has another. */
export async function checkSituations(t: TestContext, situations: readonly Situation[], world: World): Promise<void> {
  const { properties, isStateDown = false, project = {}, now = '2026-01-15T12:00:00Z' } = world
  const flags = situations.map(([, filters], place) => ({ id: place + 1, key: `f${place}`, version: 3, filters }))
  const personProperties = isStateDown ? properties : {}
  const findPerson = () => {
    if (isStateDown) throw new PortError('subject-store', 'timeout', null)
    return { uuid: 'u', properties, createdAtMs: 0 }
  }
  const server = await startDecideServer(t, { flags, project, now, subjects: { ...emptySubjects, findPerson } })
  const asked = new Map<string, Promise<Answers>>()
  const nowMs = Date.parse(now)
  const { definitions } = server.compiled

  for (const [place, [sentence, filters, outcome, distinctId = 'ada']] of situations.entries()) {
    await t.test(sentence, async () => {
      const flag = definitions.flags[place]!
      if (!asked.has(distinctId)) asked.set(distinctId, answersOf(server, distinctId, personProperties))
      const answers = await asked.get(distinctId)!
      for (const [name, answer] of Object.entries(expectedAnswers(flag, filters, outcome)))
        if (answers[name] !== null) assert.deepEqual(answers[name]!(flag.key), answer, name)

      const person = isStateDown ? err('timeout' as const) : ok(findPerson())
      const subject = aSubject({ distinctId: cut(distinctId), person, personProperties, nowMs })
      const shown = await explained(server.compiled, subject, flag.id)
      assertExplained(shown, outcome)
      const decided = outcome.index === null ? undefined : shown.conditions[outcome.index]!.result
      assert.equal(decided, outcome.index === null ? undefined : (resultOf[outcome.reason] ?? outcome.reason))

      if (isStateDown) return
      const stored = storedPerson(cut(distinctId), properties)
      assertOutcome(probedOutcome(new FlagProbe(definitions, flag), stored, nowMs), outcome)

      const question = prepareReachQuery(definitions, null, flag)
      assert.ok(question.ok)
      const management = {
        listPersonsAfter: async () => ({ results: [stored], continueAfterId: null, leftOutCount: 0 }),
      }
      const deps = { management, scans: createSubjectScanQueues(() => 0) } as unknown as CountReachDeps
      const watch = { nowMs, signal: new AbortController().signal, onPage: async () => {} }
      const { gained, values, byCondition } = await countAffectedSubjects(deps, definitions, question.value, watch)
      const reached = reachedOf(outcome.value)
      assert.deepEqual(
        [gained, byCondition],
        [reached === false || reached === null ? 0 : 1, counted(filters, outcome)],
      )
      assert.ok(values.some(({ value, after }) => value === reached && after === 1))
    })
  }
}

const resultOf: Readonly<Record<string, string>> = { targeting_match: 'matched', experiment_split: 'matched' }

/** An id as requests and events have it. */
function cut(distinctId: string): string {
  return [...distinctId].slice(0, 200).join('')
}

/** One for the rule that decides. */
function counted({ rules }: JsonObject, { reason, index }: RuleOutcome): number[] {
  if (reason === 'unsupported_definition') return []
  return (rules as JsonObject[]).map((_rule, place) => (place === index ? 1 : 0))
}

function reachedOf(value: JsonValue | undefined): JsonValue {
  if (value === undefined) return null
  if (value === null) return false
  return isPlain(value) ? value : JSON.stringify(value)
}

/** Whether clients that know no types see the value itself. */
function isPlain(value: JsonValue): boolean {
  return typeof value === 'boolean' || typeof value === 'string'
}

type Server = Awaited<ReturnType<typeof startDecideServer>>

/** By kind of answer, what it says about a flag; null for a kind that cannot be asked for this id. */
type Answers = Readonly<Record<string, ((key: string) => unknown) | null>>

/** Devices, groups and anonymous ids are sent as well: nothing of them is read. */
async function answersOf(server: Server, distinct_id: string, person_properties: JsonObject): Promise<Answers> {
  const ids = { distinct_id, $device_id: 'device', $anon_distinct_id: 'somebody', groups: { company: 'acme' } }
  const flagsOf = async (version: number) => {
    const { json } = await server.post(`/flags?v=${version}`, { token: 'phc_test', ...ids, person_properties })
    return json as { readonly [part: string]: Readonly<Record<string, JsonObject>> }
  }
  const [v1, v2, v3, v4] = [await flagsOf(1), await flagsOf(2), await flagsOf(3), await flagsOf(4)]
  const authorization = 'Bearer phc_test'
  const context = { ...person_properties, targetingKey: distinct_id, groups: ids.groups }
  const bulk = distinct_id === '' ? null : await server.post('/ofrep/v1/evaluate/flags', { context }, { authorization })
  const items = (bulk?.json.flags ?? []) as JsonObject[]
  return {
    v1: key => [v1.featureFlags![key], v1.featureFlagPayloads![key]],
    v2: key => v2.flags![key],
    v3: key => v3.flags![key],
    v4: key => v4.flags![key],
    ofrep: bulk === null ? null : key => items.find(item => item.key === key),
  }
}

/** What each kind of answer has of an outcome, from the table of 11.4. */
function expectedAnswers(
  { id, key, version }: { readonly id: number; readonly key: string; readonly version: number },
  { rules }: JsonObject,
  outcome: RuleOutcome,
): Readonly<Record<string, unknown>> {
  const { value, reason: code, index, variantKey } = outcome
  const hasFailed = value === undefined
  const listed = Array.isArray(rules) ? (rules as JsonObject[]) : []
  const reason = { code: hasFailed ? 'error' : code, condition_index: index, description: sentenceOf(outcome) }
  const failed = hasFailed ? { failed: true } : {}
  const payload = hasFailed || value === null || isPlain(value) ? null : JSON.stringify(value)
  const hasExperiment = code === 'unsupported_definition' || listed.some(rule => typeof rule.experiment_id === 'number')
  const metadata = { id, version, description: null, payload, has_experiment: hasExperiment }
  const rule = index === null ? undefined : listed[index]!
  const experimentId = rule?.experiment_id ?? null
  const record = {
    ...{ key, value: value ?? null, ...failed, reason },
    metadata: {
      ...{ ...metadata, payload: null, config_version: 2 },
      ...(rule === undefined ? {} : { rule_type: rule.rule_type, rule_id: rule.id }),
      ...(variantKey === null ? {} : { variant_key: variantKey }),
      ...(experimentId === null ? {} : { experiment_id: experimentId }),
      ...(experimentId === null || code !== 'holdout' ? {} : { holdout_id: (rule!.holdout as JsonObject).id }),
    },
  }
  const seen = hasFailed || value === null ? false : isPlain(value) ? value : true
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return {
    v1: [hasFailed ? undefined : seen, payload ?? undefined],
    v2: { key, enabled: seen !== false, variant: typeof seen === 'string' ? seen : null, ...failed, reason, metadata },
    v3: record,
    v4: record,
    ofrep: hasFailed
      ? { key, errorCode: 'GENERAL', errorDetails: `${reason.description}.` }
      : {
          ...{ key, ...(value === null ? {} : { value }), variant: variantKey ?? text },
          reason: { targeting_match: 'TARGETING_MATCH', experiment_split: 'SPLIT' }[code] ?? 'DEFAULT',
          metadata: { id, version, config_version: 2, reason: code },
        },
  }
}

function sentenceOf({ reason, index }: RuleOutcome): string {
  const rule = (index ?? 0) + 1
  const sentences: Readonly<Record<string, string>> = {
    ...{ targeting_match: `Matched rule ${rule}`, experiment_split: `Matched rule ${rule}` },
    ...{ experiment_paused: `Rule ${rule} is paused`, holdout: `Rule ${rule} holdout` },
    ...{ rollout_miss: `Rule ${rule} rollout miss`, no_rule_match: 'No rule matched' },
    ...{ unsupported_definition: 'Unsupported definition', invalid_property: 'Invalid property' },
    ...{ invalid_regular_expression: 'Invalid regular expression', missing_properties: 'Missing properties' },
  }
  return sentences[reason]!
}
