// `decoding_vectors`: bytes of a request → what the service understood, or its refusal. What was understood shows in the
// values of probe flags: twenty rollouts of 50 % tell one distinct id from another (their pattern is computed by the
// core's hash, which has vectors of its own), and a filter for each property tells its value.

import { flagHash01, isInRollout } from '#core/flags/evaluation/rollout.ts'
import {
  assertKnownFields,
  assertKnownVectorFields,
  CannotRun,
  exactDifferences,
  type Fields,
  isObject,
  textDifferences,
  textFields,
  unequal,
} from '../compare.ts'
import { type Answer, comparableText, type Instance, type Instances, jsonOf } from '../instance.ts'
import { captureEvents, createFlags, type FlagDefinition, groupEvents } from '../state.ts'
import type { VectorCase } from '../vector-case.ts'

interface DecodingVector extends Fields {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly body_base64?: string
  readonly expect: { readonly status: number; readonly decoded?: Fields; readonly [body: string]: unknown }
}

interface Probe {
  readonly flag: FlagDefinition
  readonly isOn: boolean
}

const anyTime = '2026-01-15T12:00:00Z'
const probesPerId = 20

export function decodingCases(vectors: readonly DecodingVector[], projectKey: string): VectorCase[] {
  return vectors.map(vector => ({ id: vector.id, run: instances => runVector(instances, vector, projectKey) }))
}

async function runVector(instances: Instances, vector: DecodingVector, projectKey: string): Promise<string[]> {
  assertKnownVectorFields(vector, ['method', 'path', 'headers', 'body', 'body_base64', 'expect'])
  assertKnownFields(vector.expect, 'expect', ['status', 'decoded', ...textFields])
  const { decoded = {} } = vector.expect
  const token = decoded.token ?? projectKey
  const needs = { projectKey: String(token), nowMs: Date.parse(anyTime), worker: decoded.groups !== undefined }
  return instances.with(needs, async instance => {
    const probes = await setUpProbes(instance, decoded)
    const answer = await instance.send({
      method: vector.method,
      path: vector.path,
      headers: vector.headers ?? {},
      body: vector.body_base64 === undefined ? (vector.body ?? '') : Buffer.from(vector.body_base64, 'base64'),
    })
    const found = exactDifferences(vector.expect.status, answer.status, 'status')
    if (found.length > 0) return [...found, `it answered ${answer.text.slice(0, 300)}`]
    if (vector.expect.decoded !== undefined) found.push(...compareProbes(probes, decoded, answer))
    return [...found, ...compareErrorBody(vector.expect, answer)]
  })
}

/** A text is held against the `detail` of a JSON error; an object is the whole body. */
function compareErrorBody(expected: Fields, answer: Answer): string[] {
  return textFields
    .filter(field => Object.hasOwn(expected, field))
    .flatMap(field =>
      isObject(expected[field])
        ? exactDifferences(expected[field], jsonOf(answer.text), 'body')
        : textDifferences(field, expected[field], comparableText(answer)),
    )
}

async function setUpProbes(instance: Instance, decoded: Fields): Promise<readonly Probe[]> {
  assertKnownFields(decoded, 'decoded', ['token', 'distinct_id', 'person_properties', 'groups', 'group_properties'])
  const groups = (decoded.groups ?? {}) as Fields
  const groupTypes = Object.keys(groups)
  const probes = [
    ...(typeof decoded.distinct_id === 'string' ? idProbes(decoded.distinct_id, 'person', {}) : []),
    ...propertyProbes((decoded.person_properties ?? {}) as Fields, 'property', { type: 'person' }),
    ...groupTypes.flatMap((type, index) =>
      idProbes(String(groups[type]), `group-${index}`, { aggregation_group_type_index: index }),
    ),
    ...Object.entries((decoded.group_properties ?? {}) as Record<string, Fields>).flatMap(([type, properties]) => {
      const index = groupTypes.indexOf(type)
      if (index === -1) throw new CannotRun(`properties of a group without a key: ${type}`)
      const filter = { type: 'group', group_type_index: index }
      return propertyProbes(properties, `group-${index}-property`, filter, { aggregation_group_type_index: index })
    }),
  ]
  await captureEvents(instance, groupEvents(Object.fromEntries(groupTypes.map((type, index) => [index, type]))))
  await createFlags(
    instance,
    probes.map(({ flag }) => flag),
  )
  return probes
}

function idProbes(id: string, name: string, filters: Fields): Probe[] {
  // Only the empty id is inside 0 %.
  const percentages = [0, ...Array.from({ length: probesPerId }, () => 50)]
  return percentages.map((percentage, index) => {
    const key = `${name}-${index}`
    return {
      flag: { key, filters: { ...filters, groups: [{ properties: [], rollout_percentage: percentage }] } },
      isOn: isInRollout(flagHash01(key, id, ''), percentage),
    }
  })
}

/** A pattern is held against the text form of the property, which `null` has too and an absent one has not. */
function propertyProbes(properties: Fields, name: string, filter: Fields, filters: Fields = {}): Probe[] {
  return Object.entries(properties).map(([key, value], index) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    const pattern = `^${text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`
    const properties = [{ ...filter, key, operator: 'regex', value: pattern }]
    const groups = [{ properties, rollout_percentage: 100 }]
    return { flag: { key: `${name}-${index}`, filters: { ...filters, groups } }, isOn: true }
  })
}

function compareProbes(probes: readonly Probe[], decoded: Fields, answer: Answer): string[] {
  const body = jsonOf(answer.text)
  if (!isObject(body)) return [unequal('body', 'a JSON object', answer.text)]
  const on = new Set(flagsThatAreOn(body))
  if (decoded.distinct_id === null && on.size > 0) return [`decoded.distinct_id: flags were evaluated: ${[...on]}`]
  const wrong = probes.filter(({ flag, isOn }) => on.has(flag.key) !== isOn)
  if (wrong.length === 0) return []
  const names = wrong.map(({ flag, isOn }) => `${flag.key} should be ${isOn ? 'on' : 'off'}`)
  return [`decoded: the probes show something else: ${names.join(', ')}`]
}

/** In any of the shapes of an answer. */
function flagsThatAreOn({ flags, featureFlags }: Fields): string[] {
  if (Array.isArray(featureFlags)) return featureFlags
  if (isObject(featureFlags)) return Object.keys(featureFlags).filter(key => featureFlags[key] !== false)
  if (isObject(flags)) return Object.keys(flags).filter(key => (flags[key] as Fields).enabled === true)
  throw new CannotRun('the answer has neither flags nor featureFlags')
}
