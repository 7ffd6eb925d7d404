// `exchange_vectors`: definitions, then steps over HTTP, each fully processed before the next → the answers, and what is
// stored afterwards. A step may use values that earlier answers gave (`save`, `{{name}}`).

import { geoipKeys } from '#core/geoip.ts'
import type { GeoipTable } from '../../../src/commands/create-table-geoip.ts'
import { answerDifferences, answerFields, valueAt } from '../answer.ts'
import {
  assertAtMostOne,
  assertKnownFields,
  assertKnownVectorFields,
  CannotRun,
  type Fields,
  instantOf,
  isObject,
} from '../compare.ts'
import { bodyFields, bodyOf, type Exchange, jsonOf, type WrittenBody } from '../exchange.ts'
import { type Instances, type Needs, personalKey } from '../instance.ts'
import { Label } from '../labels.ts'
import type { FlagDefinition } from '../state.ts'
import { compareStoredData, storedDataFields } from '../stored-data.ts'
import { anyTime, type VectorCase } from '../vector-case.ts'
import { setUpDefinitions } from './flags.ts'

interface Step extends WrittenBody, Fields {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Whether a personal key is sent. */
  readonly private?: boolean
  readonly body_json?: unknown
  /** Name → path in the answer. */
  readonly save?: Readonly<Record<string, string>>
  readonly expect?: Fields
}

export interface ExchangeVector extends Fields {
  readonly id: string
  readonly now?: string
  readonly flags?: readonly FlagDefinition[]
  readonly project?: Fields
  readonly geoip?: GeoipTable
  /** By day, base64. */
  readonly cookieless_salts?: Readonly<Record<string, string>>
  readonly steps: readonly Step[]
}

/** @param isWhole whether a vector of this id lists all that is stored. */
export function exchangeCases(
  vectors: readonly ExchangeVector[],
  projectKey: string,
  isWhole: (id: string) => boolean,
): VectorCase[] {
  return vectors.map(vector => ({
    id: vector.id,
    run: instances => runVector(instances, vector, projectKey, isWhole(vector.id)),
  }))
}

async function runVector(
  instances: Instances,
  vector: ExchangeVector,
  projectKey: string,
  isWhole: boolean,
): Promise<string[]> {
  assertKnownExchange(vector)
  const needs = needsOf(vector, projectKey)
  return instances.with(needs, async instance => {
    await setUpDefinitions(instance, vector)
    const saved = new Map<string, unknown>()
    const texts = new Map<string, string>()
    const found: string[] = []
    for (const [index, written] of vector.steps.entries()) {
      const { save = {}, expect = {}, ...sent } = written
      const answer = await instance.send(requestOf(filled(sent, saved, texts) as Step))
      const json = jsonOf(answer.text)
      const differences = answerDifferences(filled(expect, saved, texts) as Fields, answer)
      for (const [name, path] of Object.entries(save)) {
        const value = valueAt(json, path)
        if (value === undefined) differences.push(`body.${path}: is absent and cannot be saved as ${name}`)
        saved.set(name, value)
      }
      found.push(...differences.map(text => `step ${index + 1}: ${text}`))
      // Later steps may build on this answer, so what they differ in would only hide the cause.
      if (found.length > 0) return found
      if (needs.worker) await instance.caughtUp()
    }
    const stored = Object.entries(vector).filter(([field]) => storedDataFields.includes(field))
    return compareStoredData(instance, filled(Object.fromEntries(stored), saved, texts) as Fields, isWhole)
  })
}

/** @throws CannotRun for a field that the form does not have, and for a vector that no service could fail. */
function assertKnownExchange(vector: ExchangeVector): void {
  const setUpFields = ['now', 'flags', 'project', 'geoip', 'cookieless_salts']
  assertKnownVectorFields(vector, [...setUpFields, 'steps', ...storedDataFields])
  for (const location of Object.values(vector.geoip ?? {})) assertKnownFields(location, 'a location', geoipKeys)
  const { steps = [] } = vector
  if (steps.length === 0) throw new CannotRun('the vector has no steps')
  for (const step of steps) {
    const fields = ['method', 'path', 'headers', 'private', ...bodyFields, 'body_json', 'save', 'expect']
    assertKnownFields(step, 'a step', fields)
    assertAtMostOne(step, 'the request', [...bodyFields, 'body_json'])
    assertKnownFields(step.expect ?? {}, 'expect', answerFields)
    if (typeof step.path !== 'string' || typeof step.method !== 'string')
      throw new CannotRun('a step has no method or no path')
  }
  const isAnyAnswerExpected = steps.some(({ expect = {} }) => Object.keys(expect).length > 0)
  if (!isAnyAnswerExpected && !storedDataFields.some(field => Object.hasOwn(vector, field)))
    throw new CannotRun('the vector expects nothing')
}

/** Paths of the private API, of evaluations and of OpenTelemetry requests. */
const bringsNoEvents = /^\/(?:api|flags|decide|ofrep|v1|i\/v1\/(?:logs|metrics|traces)|i\/v0\/ai\/otel)\b/

function needsOf(vector: ExchangeVector, projectKey: string): Needs {
  const { now = anyTime, project = {}, geoip, cookieless_salts: salts, steps } = vector
  // Without events there is nothing to process, and an instance without a worker starts in half the time.
  const worker =
    project.group_type_mapping !== undefined ||
    storedDataFields.some(field => Object.hasOwn(vector, field)) ||
    steps.some(({ path }) => !bringsNoEvents.test(path))
  return { projectKey, nowMs: instantOf(now), worker, ...(geoip && { geoipTable: geoip }), ...(salts && { salts }) }
}

function requestOf(step: Step): Exchange {
  const { method, path, headers = {}, body_json } = step
  const named = new Set(Object.keys(headers).map(name => name.toLowerCase()))
  const isJson = body_json !== undefined
  return {
    method,
    path,
    headers: {
      ...(step.private === true && !named.has('authorization') && { authorization: `Bearer ${personalKey}` }),
      ...(isJson && !named.has('content-type') && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: isJson ? JSON.stringify(body_json) : bodyOf(step),
  }
}

/** A copy with saved values in the place of `{{name}}`, and labels in the place of `<label:…>`. */
function filled(value: unknown, saved: ReadonlyMap<string, unknown>, texts: Map<string, string>): unknown {
  if (typeof value === 'string') return filledText(value, saved, texts)
  if (Array.isArray(value)) return value.map(item => filled(item, saved, texts))
  if (!isObject(value) || JSON.isRawJSON(value)) return value
  const entries = Object.entries(value).map(([key, item]) => {
    return [String(filledText(key, saved, new Map())), filled(item, saved, texts)] as const
  })
  return Object.fromEntries(entries)
}

function filledText(text: string, saved: ReadonlyMap<string, unknown>, texts: Map<string, string>): unknown {
  const label = /^<label:(.+)>$/.exec(text)?.[1]
  if (label !== undefined) return new Label(label, texts)
  const savedAs = (name: string) => {
    if (!saved.has(name)) throw new CannotRun(`no step before has saved ${name}`)
    return saved.get(name)
  }
  // Alone, a value keeps its type; inside a text it is written as text.
  const alone = /^\{\{(\w+)\}\}$/.exec(text)?.[1]
  if (alone !== undefined) return savedAs(alone)
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => String(savedAs(name)))
}
