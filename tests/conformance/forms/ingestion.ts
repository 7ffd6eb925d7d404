// The vectors of ingestion: one request, or several, each fully processed before the next → its answers, and what is
// stored afterwards. What is stored is read by `stored-data.ts`; this file sends and compares answers.

import type { EventLogWriter } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { GeoipTable } from '../../../src/commands/test-geoip.ts'
import {
  assertKnownFields,
  assertKnownVectorFields,
  CannotRun,
  exactDifferences,
  type Fields,
  subsetDifferences,
  textDifferences,
  textFields,
  unequal,
} from '../compare.ts'
import { type Answer, comparableText, type Instance, type Instances, jsonOf, type Needs } from '../instance.ts'
import { changeProject, useUpQuotas } from '../state.ts'
import { compareStoredData, storedDataFields } from '../stored-data.ts'
import type { VectorCase } from '../vector-case.ts'

interface Step extends Fields {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly body_base64?: string
  readonly body_generator?: {
    readonly prefix: string
    readonly repeat: string
    readonly count: number
    readonly suffix: string
  }
  readonly expect?: Fields
}

export interface IngestionVector extends Step {
  readonly id: string
  readonly now?: string
  readonly config?: Fields
  readonly steps?: readonly Step[]
}

export interface IngestionMeta extends Fields {
  readonly now_default: string
  readonly client_ip_default: string
  readonly project: { readonly token: string }
}

const stepFields = ['method', 'path', 'headers', 'body', 'body_base64', 'body_generator', 'expect']
const expectFields = [
  ...['status', 'headers', 'header_contains'],
  ...['body', 'body_prefix', 'body_contains', 'body_json', 'body_json_subset'],
]

/** @param isWhole whether a vector of this id lists all that is stored. */
export function ingestionCases(
  vectors: readonly IngestionVector[],
  meta: IngestionMeta,
  isWhole: (id: string) => boolean,
): VectorCase[] {
  return vectors.map(vector => ({
    id: vector.id,
    run: instances => runVector(instances, vector, meta, isWhole(vector.id)),
  }))
}

async function runVector(
  instances: Instances,
  vector: IngestionVector,
  meta: IngestionMeta,
  isWhole: boolean,
): Promise<string[]> {
  // With steps, a step's field beside them would say nothing.
  const ownFields = vector.steps === undefined ? stepFields : ['steps']
  assertKnownVectorFields(vector, ['now', 'config', ...ownFields, ...storedDataFields])
  const steps = vector.steps ?? [onlyStep(vector)]
  return instances.with(needsOf(vector, meta), async instance => {
    await configureProject(instance, vector.config ?? {})
    const found: string[] = []
    for (const [index, step] of steps.entries()) {
      assertKnownFields(step, 'a step', stepFields)
      const answer = await instance.send({
        method: step.method ?? 'POST',
        path: step.path!,
        headers: { ...addressHeader(step, meta), ...step.headers },
        body: bodyOf(step),
      })
      const differences = compareAnswer(step.expect ?? {}, answer)
      found.push(...differences.map(text => (steps.length === 1 ? text : `step ${index + 1}: ${text}`)))
      if (index < steps.length - 1) await instance.caughtUp()
    }
    if (found.length > 0 || !storedDataFields.some(field => Object.hasOwn(vector, field))) return found
    await instance.caughtUp()
    return compareStoredData(instance, vector, isWhole)
  })
}

function onlyStep(vector: IngestionVector): Step {
  return Object.fromEntries(Object.entries(vector).filter(([field]) => stepFields.includes(field)))
}

/** Where the request comes from, as a trusted proxy says it. */
function addressHeader({ headers = {} }: Step, { client_ip_default }: IngestionMeta): Record<string, string> {
  const isNamed = Object.keys(headers).some(name => name.toLowerCase() === 'x-forwarded-for')
  return isNamed ? {} : { 'x-forwarded-for': client_ip_default }
}

function needsOf({ config = {}, now }: IngestionVector, meta: IngestionMeta): Needs {
  const settings: Record<string, string> = {}
  let eventLog: EventLogWriter | undefined
  let geoipTable: GeoipTable = {}
  for (const [name, value] of Object.entries(config)) {
    switch (name) {
      case 'token_validation':
        settings.PENNON_UNKNOWN_KEYS = value === 'off' ? 'accept' : 'reject'
        break
      case 'historical_rerouting': {
        const { enabled, days } = value as { enabled: boolean; days: number }
        if (enabled) settings.PENNON_REROUTE_OLDER_THAN_DAYS = String(days)
        break
      }
      case 'sink':
        if (value !== 'unavailable') throw new CannotRun(`there is no sink "${String(value)}"`)
        eventLog = unavailableLog
        break
      case 'geoip':
        geoipTable = value as GeoipTable
        break
      case 'mode':
        if (value !== 'import') throw new CannotRun(`the service has no mode "${String(value)}"`)
        settings.PENNON_IMPORT_ONLY = 'true'
        break
      case 'project':
      case 'quota_limited':
        break // of the project: once the service runs
      default:
        throw new CannotRun(`config has a field that the runner does not know: ${name}`)
    }
  }
  return {
    projectKey: meta.project.token,
    nowMs: Date.parse(now ?? meta.now_default),
    worker: true,
    settings,
    geoipTable,
    ...(eventLog === undefined ? {} : { eventLog }),
  }
}

async function configureProject(instance: Instance, config: Fields): Promise<void> {
  await changeProject(instance, (config.project ?? {}) as Fields)
  if (config.quota_limited !== undefined) await useUpQuotas(instance, config.quota_limited as string[])
}

const unavailableLog: EventLogWriter = {
  append: () => Promise.reject(new PortError('event-log', 'unavailable')),
  close: () => Promise.resolve(),
}

function bodyOf({ body, body_base64, body_generator }: Step): string | Uint8Array {
  if (body_base64 !== undefined) return Buffer.from(body_base64, 'base64')
  if (body_generator === undefined) return body ?? ''
  const { prefix, repeat, count, suffix } = body_generator
  return prefix + repeat.repeat(count) + suffix
}

function compareAnswer(expected: Fields, answer: Answer): string[] {
  assertKnownFields(expected, 'expect', expectFields)
  const json = jsonOf(answer.text)
  const text = comparableText(answer)
  const found: string[] = []
  for (const [field, value] of Object.entries(expected)) {
    if (field === 'status') {
      if (answer.status !== value) found.push(`${unequal('status', value, answer.status)}, with ${text.slice(0, 300)}`)
    } else if (field === 'headers') found.push(...compareHeaders(value as Fields, answer))
    else if (field === 'header_contains') found.push(...compareHeaderParts(value as Record<string, string[]>, answer))
    else if (textFields.includes(field)) found.push(...textDifferences(field, value, text))
    else if (field === 'body_json') found.push(...exactDifferences(value, json, 'body'))
    else if (field === 'body_json_subset') found.push(...subsetDifferences(value, json, 'body'))
  }
  return found
}

function compareHeaders(expected: Fields, { headers }: Answer): string[] {
  return Object.entries(expected).flatMap(([name, value]) =>
    exactDifferences(value, headers[name.toLowerCase()], `header ${name}`),
  )
}

function compareHeaderParts(expected: Readonly<Record<string, readonly string[]>>, { headers }: Answer): string[] {
  return Object.entries(expected).flatMap(([name, parts]) => {
    const value = String(headers[name.toLowerCase()] ?? '')
    return parts.filter(part => !value.includes(part)).map(part => unequal(`header ${name}`, part, value))
  })
}
