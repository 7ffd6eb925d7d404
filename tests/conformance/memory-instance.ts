// Instances in the test's memory: the capture feature over HTTP, a log, a state and rows in arrays and maps. Its
// private API answers only what ingestion vectors request, with the encoders of the real one.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { compileProject } from '#core/flags/evaluation/compile-project.ts'
import { toCompactJson } from '#core/json.ts'
import { listChunkSubjects, parseChunk } from '#core/processing/parse-chunk.ts'
import { processChunk } from '#core/processing/process-chunk.ts'
import { encodeEvent } from '#wire/management/events.ts'
import { encodeGroup, encodeGroupType } from '#wire/management/persons/groups.ts'
import { encodePerson } from '#wire/management/persons/persons.ts'
import { decodeProject, encodeProject } from '#wire/management/projects.ts'
import { encodeReplayMessage } from '#wire/management/replay-messages.ts'
import { type CaptureServer, startCaptureServer } from '../support/capture-server.ts'
import { memoryChunkStore } from '../support/memory/memory-chunk-store.ts'
import { MemoryEventStore } from '../support/memory/memory-event-store.ts'
import { type MemoryState, memoryState } from '../support/memory/memory-state.ts'
import { loadWhole } from '../support/state.ts'
import { aProject, emptyDefinitions } from '../support/values.ts'
import { CannotRun } from './compare.ts'
import { exchange } from './exchange.ts'
import type { Instance, Instances, Needs } from './instance.ts'

/** The instances end with the test. */
export function memoryInstances(t: Pick<TestContext, 'after'>): Instances {
  return {
    with: async (needs, use) => use(await startMemoryInstance(t, needs)),
  }
}

async function startMemoryInstance(t: Pick<TestContext, 'after'>, needs: Needs): Promise<Instance> {
  const state = memoryState([aProject({ apiToken: needs.projectKey })])
  const events = new MemoryEventStore()
  const { eventLog } = needs
  const server = await startCaptureServer(t, {
    now: needs.nowMs,
    settings: needs.settings ?? {},
    findProject: token => {
      const project = projectOf(state)
      return token === project.apiToken ? compileProject(emptyDefinitions(project, 1)) : null
    },
    ...(eventLog && { wrapLog: () => eventLog }),
  })
  const call: Instance['call'] = async (method, address, body) => {
    const json = answerOf(state, events, method, new URL(address, server.url), body)
    return { status: json === null ? 404 : 200, json, text: JSON.stringify(json) }
  }
  return {
    projectKey: needs.projectKey,
    send: sent => exchange(server.url, sent),
    call,
    api: async <T>(method: string, path: string, body?: unknown) => {
      const { status, json } = await call(method, path, body)
      if (status !== 200) throw new CannotRun(`${method} ${path} answered ${status}`)
      return json as T
    },
    caughtUp: () => processNewRecords(server.log, state, events, needs),
    setClock: nowMs => server.clock.set(nowMs),
  }
}

async function processNewRecords(
  log: CaptureServer['log'],
  state: MemoryState,
  events: MemoryEventStore,
  { geoipTable = {} }: Needs,
): Promise<void> {
  const store = memoryChunkStore(state)
  for (const { stream } of await log.listStreams()) {
    const { offset } = await store.claimPosition(stream, 'worker')
    const read = await log.read(stream, offset, { recordCountMax: 1e9, bytesMax: 1e9 })
    const chunk = parseChunk(read, new Map())
    const processed = processChunk(chunk, await loadWhole(store, listChunkSubjects(chunk)), {
      logId: 'log',
      lookUpGeoip: address => geoipTable[address] ?? null,
    })
    await events.insert(processed.rows)
    const position = { stream, ownerId: 'worker', offset: read.nextOffset, committedAtMs: 0 }
    assert.equal(await store.commitChunk(processed.changes, position), 'committed')
  }
}

function projectOf(state: MemoryState) {
  return state.projects.get(1)!
}

/** Null when there is nothing. */
function answerOf(
  state: MemoryState,
  events: MemoryEventStore,
  method: string,
  { pathname, searchParams }: URL,
  body: unknown,
) {
  const path = pathname.replace('/api/projects/@current', '')
  if (method === 'PATCH' && path === '/') return changeProject(state, body as object)
  assert.equal(method, 'GET', `there is no ${method} ${pathname} in memory`)
  if (path === '/groups_types/') return state.groupTypes.map(encodeGroupType)
  const [, uuid] = /^\/persons\/([^/]+)\/$/.exec(path) ?? []
  if (uuid !== undefined) return personsOf(state).find(person => person.uuid === uuid) ?? null
  return { results: listOf(state, events, path, searchParams) }
}

function changeProject(state: MemoryState, body: object) {
  const project = projectOf(state)
  const { quotas, ingestion, ...changes } = decodeProject(body)
  const changed = {
    ...project,
    ...changes,
    quotas: { ...project.quotas, ...quotas },
    ingestion: { ...project.ingestion, ...ingestion },
  }
  state.projects.set(project.id, changed)
  return encodeProject(changed, { primary: null, backup: null })
}

function listOf(
  state: MemoryState,
  events: MemoryEventStore,
  path: string,
  query: URLSearchParams,
): readonly unknown[] {
  const id = query.get('distinct_id')
  switch (path) {
    case '/events/':
      return [...events.rows.values()].map(row => JSON.parse(encodeEvent({ ...row, createdAtMs: row.capturedAtMs })))
    case '/persons/':
      return personsOf(state).filter(({ distinct_ids: ids }) => id === null || ids.includes(id))
    case '/groups/':
      return [...state.groups.values()]
        .filter(({ typeIndex }) => String(typeIndex) === query.get('group_type_index'))
        .map(group => JSON.parse(encodeGroup({ ...group, propertiesJson: toCompactJson(group.properties) })))
    case '/ingestion_warnings/':
      return state.warnings.map(({ type }) => ({ type }))
    case '/replay_messages/':
      return [...events.recordings.values()].map(encodeReplayMessage)
    default:
      return assert.fail(`there is no ${path} in memory`)
  }
}

function personsOf(state: MemoryState): { uuid: string; distinct_ids: string[] }[] {
  return Array.from(state.persons.values(), (person, index) => {
    const distinctIds = [...state.mappings.values()].filter(({ personUuid }) => personUuid === person.uuid)
    const text = encodePerson({
      ...person,
      id: index + 1,
      propertiesJson: toCompactJson(person.properties),
      distinctIds,
      distinctIdCount: distinctIds.length,
      flagOverrides: [],
    })
    return JSON.parse(text)
  })
}
