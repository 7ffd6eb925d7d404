// Measures special cases of evaluation: with and without stored data, deep dependencies, a large static cohort,
// unchanged definitions, and thousands of flags with regular expressions.

import { type Pennon, testPersonalKey } from '../../tests/support/pennon.ts'
import { loopHeldMs, movePinned, startBenchServer } from '../bench-server.ts'
import { batchJson, eventBody, flagBody, rulesFlagBody, storedPersonProperties } from '../bodies.ts'
import { type FlagsCase, flagsFigure, steady } from '../flags-figure.ts'
import { type Floor, startFloor } from '../floor.ts'
import { httpGet, httpRequest, type LoadOptions } from '../load-generator.ts'
import { load, measured } from '../processes.ts'
import { micros, print } from '../report.ts'

const flagCount = 20
const memberCount = 100_000

interface BenchProject {
  readonly id: number
  readonly api_token: string
}

export async function evaluation(): Promise<void> {
  const server = await startBenchServer()
  const floor = await startFloor()
  try {
    for (const pid of Object.values(server.childPids())) movePinned(pid, 'load')
    for (const [name, prepare] of Object.entries(evaluationCases))
      await flagsFigure(server, floor, { name, ...(await prepare(server)) })
    for (const count of definitionCounts) await unchangedDefinitions(server, floor, count)
    await thousandsOfPatterns(server)
  } finally {
    floor.stop()
    await server.stop()
  }
}

/** Each prepares a project of its own, and returns the request to measure. */
export const evaluationCases: Record<string, (server: Pennon) => Promise<Omit<FlagsCase, 'name'>>> = {
  '20 flags, all properties sent': withoutStoredData,
  '20 flags of version 2, all properties sent': ofVersion2,
  '20 flags, one needs the stored person': oneFlagOfStoredData,
  '20 flags, dependencies 10 deep': deepDependencies,
  '20 flags, static cohort of 100,000': largeStaticCohort,
}

/** Numbers of flags whose unchanged definitions are asked for. */
export const definitionCounts = [flagCount, 350] as const

async function withoutStoredData(server: Pennon) {
  const project = await newProject(server, 'without stored data')
  for (let index = 0; index < flagCount; index++) await newFlag(server, project, flagBody(index))
  const body = requestOf(project, { person_properties: storedPersonProperties })
  return { path: '/decide?v=3', body }
}

/** The same conditions as rules. */
async function ofVersion2(server: Pennon) {
  const project = await newProject(server, 'version 2')
  const path = `/api/projects/${project.id}/feature_flags/?skip_validation=true`
  for (let index = 0; index < flagCount; index++) await server.api('POST', path, rulesFlagBody(index))
  const body = requestOf(project, { person_properties: storedPersonProperties })
  return { path: '/decide?v=3', body }
}

async function oneFlagOfStoredData(server: Pennon) {
  const project = await newProject(server, 'one flag of stored data')
  for (let index = 1; index < flagCount; index++) await newFlag(server, project, flagBody(index))
  const stored = { key: 'city', type: 'person', operator: 'exact', value: 'Oslo' }
  await newFlag(server, project, { key: 'stored', filters: { groups: [{ properties: [stored] }] } })
  await sendBatch(server, project, 1, () => personOf('ada'))
  const { city: _stored, ...sent } = storedPersonProperties
  const body = requestOf(project, { person_properties: sent })
  return { path: '/decide?v=3', body }
}

async function deepDependencies(server: Pennon) {
  const project = await newProject(server, 'dependencies')
  const depth = 10
  let below: number | null = null
  for (let index = 0; index < flagCount; index++) {
    if (index % depth === 0) below = null
    const test = { key: String(below), type: 'flag', operator: 'flag_evaluates_to', value: true }
    const groups = [{ properties: below === null ? [] : [test] }]
    const flag: { id: number } = await newFlag(server, project, { key: `link-${index}`, filters: { groups } })
    below = flag.id
  }
  const body = requestOf(project)
  return { path: '/decide?v=3', body }
}

async function largeStaticCohort(server: Pennon) {
  const project = await newProject(server, 'static cohort')
  const ids = Array.from({ length: memberCount }, (_, index) => `member-${index}`)
  const perBatch = 500
  for (let first = 0; first < memberCount; first += perBatch)
    await sendBatch(server, project, perBatch, index => personOf(ids[first + index]!))
  const { id } = await server.api<{ id: number }>('POST', `/api/projects/${project.id}/cohorts/`, {
    name: 'Members',
    is_static: true,
  })
  const perCall = 5_000
  for (let first = 0; first < memberCount; first += perCall)
    await server.api('PATCH', `/api/projects/${project.id}/cohorts/${id}/add_persons_to_static_cohort/`, {
      distinct_ids: ids.slice(first, first + perCall),
    })
  const inCohort = { key: 'id', type: 'cohort', operator: 'in', value: id }
  for (let index = 0; index < flagCount; index++)
    await newFlag(server, project, { key: `member-${index}`, filters: { groups: [{ properties: [inCohort] }] } })
  const body = requestOf(project, { distinct_id: 'member-4711' })
  return { path: '/decide?v=3', body }
}

async function unchangedDefinitions(server: Pennon, floor: Floor, count: number): Promise<void> {
  const { etag, ...options } = await definitionsCase(server, count)
  await floor.setEtag(etag)
  const bare = await measured(floor.pid, { ...options, durationMs: 4_000, port: floor.port })
  const ours = await measured(server.pid, { ...options, durationMs: 4_000, port: server.port })
  print({
    name: `definitions of ${count} flags, 304`,
    value: `${micros(ours.cpuMicros)}, ${Math.round(ours.answerCount / ours.seconds)}/s`,
    floor: micros(bare.cpuMicros),
    ratio: bare.cpuMicros / ours.cpuMicros,
    aim: '≥ 0.9',
  })
  if (ours.failureCount > 0) console.log(`  ${ours.failureCount} answers were not 304`)
}

/** A project with that many flags, and the request of a client that has their definitions. */
export async function definitionsCase(
  server: Pennon,
  count: number,
): Promise<Omit<LoadOptions, 'port' | 'durationMs'> & { readonly etag: string }> {
  const project = await newProject(server, `definitions of ${count} flags`)
  for (let index = 0; index < count; index++) await newFlag(server, project, flagBody(index))
  const path = `/flags/definitions?token=${project.api_token}&send_cohorts`
  const headers = { authorization: `Bearer ${testPersonalKey}` }
  const etag = (await fetch(server.url + path, { headers })).headers.get('etag')!
  return { ...steady, requests: [httpGet(path, { ...headers, 'if-none-match': etag })], expectedStatus: 304, etag }
}

async function thousandsOfPatterns(server: Pennon): Promise<void> {
  const project = await newProject(server, 'patterns')
  const count = 5_000
  // Flags created at the same time are compiled together; one by one, the growing set would be compiled 5,000 times.
  const atOnce = 100
  for (let first = 0; first < count; first += atOnce) {
    const some = Array.from({ length: atOnce }, (_, offset) => newFlag(server, project, patternFlag(first + offset)))
    await Promise.all(some)
  }
  const person_properties = { agent: 'abab'.repeat(100), path: 'abcc'.repeat(100) }
  const requests = [httpRequest('/flags?v=2', requestOf(project, { person_properties }))]
  const options = { connections: 4, durationMs: 6_000, port: server.port, requests }
  await load({ ...options, durationMs: 3_000 })
  const { result, heldMs } = await loopHeldMs(server, () => load(options))
  print({
    name: '5,000 flags with patterns, 4 at once',
    value: `${(result.answerCount / result.seconds).toFixed(1)}/s, p50 ${result.p50.toFixed(0)} ms, loop held ≤ ${heldMs.toFixed(0)} ms`,
    aim: 'loop held ≤ 50 ms',
  })
}

function patternFlag(index: number): object {
  const value = `^(a|b|ab)*(${index}|[a-c]{2,${2 + (index % 30)}}x)+\\d$`
  const pattern = { key: index % 2 === 0 ? 'agent' : 'path', type: 'person', operator: 'regex', value }
  return { key: `pattern-${index}`, filters: { groups: [{ properties: [pattern] }] } }
}

function newProject(server: Pennon, name: string): Promise<BenchProject> {
  return server.api<BenchProject>('POST', '/api/projects/', { name })
}

function newFlag(server: Pennon, project: BenchProject, flag: object): Promise<{ id: number }> {
  return server.api<{ id: number }>('POST', `/api/projects/${project.id}/feature_flags/`, flag)
}

function requestOf(project: BenchProject, fields: object = {}): Buffer {
  return Buffer.from(JSON.stringify({ api_key: project.api_token, distinct_id: 'ada', ...fields }))
}

function personOf(distinctId: string): object {
  return {
    ...eventBody(1),
    uuid: undefined,
    event: '$set',
    distinct_id: distinctId,
    properties: { $set: storedPersonProperties },
  }
}

async function sendBatch(
  server: Pennon,
  project: BenchProject,
  count: number,
  event: (index: number) => object,
): Promise<void> {
  const body = { ...JSON.parse(batchJson(0, count, event).toString()), api_key: project.api_token }
  const answer = await fetch(`${server.url}/batch/`, { method: 'POST', body: JSON.stringify(body) })
  if (answer.status !== 200) throw new Error(`/batch/ answered ${answer.status}: ${await answer.text()}`)
  await server.caughtUp()
}
