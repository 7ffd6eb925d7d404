// The vectors of ingestion: one or several requests, each fully processed before the next → the answers, and what is
// stored afterwards. This file sends requests and compares answers; `stored-data.ts` reads the stored data.

import { geoipKeys } from '#core/geoip.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { GeoipTable } from '../../../src/commands/create-table-geoip.ts'
import { answerDifferences, answerFields } from '../answer.ts'
import { assertKnownFields, assertKnownVectorFields, CannotRun, type Fields, instantOf, show } from '../compare.ts'
import { bodyFields, bodyOf, type WrittenBody } from '../exchange.ts'
import type { Instance, Instances, Needs } from '../instance.ts'
import { changeProject, useUpQuotas } from '../state.ts'
import { compareStoredData, storedDataFields } from '../stored-data.ts'
import type { VectorCase } from '../vector-case.ts'

interface Step extends WrittenBody, Fields {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly expect?: Fields
}

export interface IngestionVector extends Partial<Step> {
  readonly id: string
  readonly now?: string
  readonly config?: Fields
  readonly steps?: readonly Step[]
}

export interface IngestionMeta extends Fields {
  readonly format?: number
  readonly now_default: string
  readonly client_ip_default: string
  readonly project: { readonly token: string }
}

const stepFields = ['method', 'path', 'headers', ...bodyFields, 'expect']

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
  const steps = stepsOf(vector, meta)
  return instances.with(needsOf(vector, meta), async instance => {
    await configureProject(instance, vector.config ?? {})
    const found: string[] = []
    for (const [index, step] of steps.entries()) {
      const answer = await instance.send({
        method: step.method ?? 'POST',
        path: step.path,
        headers: { ...addressHeader(step, meta), ...step.headers },
        body: bodyOf(step),
      })
      const differences = answerDifferences(step.expect ?? {}, answer)
      found.push(...differences.map(text => (steps.length === 1 ? text : `step ${index + 1}: ${text}`)))
      if (index < steps.length - 1) await instance.caughtUp()
    }
    if (found.length > 0 || !storedDataFields.some(field => Object.hasOwn(vector, field))) return found
    await instance.caughtUp()
    return compareStoredData(instance, vector, isWhole)
  })
}

/** @throws CannotRun for a field that the form does not have, and for a vector that no service could fail. */
function stepsOf(vector: IngestionVector, meta: IngestionMeta): readonly Step[] {
  const { format = 1 } = meta
  if (format !== 1) throw new CannotRun(`the format of the file is ${show(format)} instead of 1`)
  // With `steps`, a step's field next to them would have no effect.
  const ownFields = vector.steps === undefined ? stepFields : ['steps']
  assertKnownVectorFields(vector, ['now', 'config', ...ownFields, ...storedDataFields])
  const steps = vector.steps ?? [onlyStep(vector)]
  for (const step of steps) {
    assertKnownFields(step, 'a step', stepFields)
    assertKnownFields(step.expect ?? {}, 'expect', answerFields)
    if (typeof step.path !== 'string') throw new CannotRun('a step has no path')
  }
  const answersAreExpected = steps.some(({ expect = {} }) => Object.keys(expect).length > 0)
  if (steps.length === 0) throw new CannotRun('the vector has no steps')
  if (!answersAreExpected && !storedDataFields.some(field => Object.hasOwn(vector, field))) {
    throw new CannotRun('the vector expects nothing')
  }
  return steps
}

function onlyStep(vector: IngestionVector): Step {
  return Object.fromEntries(Object.entries(vector).filter(([field]) => stepFields.includes(field))) as unknown as Step
}

/** The sender's address, as a trusted proxy passes it. */
function addressHeader({ headers = {} }: Step, { client_ip_default }: IngestionMeta): Record<string, string> {
  const isNamed = Object.keys(headers).some(name => name.toLowerCase() === 'x-forwarded-for')
  return isNamed ? {} : { 'x-forwarded-for': client_ip_default }
}

function needsOf({ config = {}, now }: IngestionVector, meta: IngestionMeta): Needs {
  const settings: Record<string, string> = {}
  let eventLog: EventLogAppender | undefined
  let geoipTable: GeoipTable = {}
  for (const [name, value] of Object.entries(config)) {
    switch (name) {
      case 'token_validation':
        if (value !== 'off' && value !== 'enforce') throw new CannotRun(`token_validation cannot be ${show(value)}`)
        settings.PENNON_UNKNOWN_KEYS = value === 'off' ? 'accept' : 'reject'
        break
      case 'historical_rerouting': {
        assertKnownFields(value as Fields, name, ['enabled', 'days'])
        const { enabled, days } = value as { enabled: boolean; days: number }
        if (typeof enabled !== 'boolean') throw new CannotRun(`${name} is neither enabled nor not: ${show(value)}`)
        if (enabled) settings.PENNON_REROUTE_OLDER_THAN_DAYS = String(days)
        break
      }
      case 'sink':
        if (value !== 'unavailable') throw new CannotRun(`there is no sink ${show(value)}`)
        eventLog = unavailableLog
        break
      case 'geoip':
        geoipTable = value as GeoipTable
        for (const location of Object.values(geoipTable)) assertKnownFields(location, 'a location', geoipKeys)
        break
      case 'mode':
        if (value !== 'import') throw new CannotRun(`the service has no mode ${show(value)}`)
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
    nowMs: instantOf(now ?? meta.now_default),
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

const unavailableLog: EventLogAppender = {
  append: () => Promise.reject(new PortError('event-log', 'unavailable')),
}
