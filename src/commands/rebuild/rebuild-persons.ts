// `pennon rebuild persons`: makes the worker rebuild persons from their events, waits until it has, and shows what has
// changed.

import { setTimeout as wait } from 'node:timers/promises'
import { isUuid } from '#core/events/uuid.ts'
import { formatCount, truncateList } from '#core/format-count.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { toPrintableName } from '#core/printable.ts'
import { ClientError, type PrivateApi } from '../client/private-api.ts'
import { type ClientOptions, runClient } from '../client/run-client.ts'
import { type Column, formatTable } from '../client/table.ts'
import { createTerminal, type Terminal } from '../client/terminal.ts'

export interface RebuildOptions extends ClientOptions {
  readonly all?: boolean
  readonly apply?: boolean
}

const path = '/person_rebuilds/'
const firstPauseMs = 200
const longestPauseMs = 3_000

export function rebuildPersons(ids: readonly string[], options: RebuildOptions): Promise<void> {
  const { all = false, apply = false, json = false } = options
  return runClient(options, 'person:write', async api => {
    if (all === ids.length > 0) throw new ClientError('Name distinct ids or uuids of persons, or pass --all.')
    // Ids that look like a uuid are sent as uuids, too, since a distinct id may also look like one.
    const persons = all ? { all } : { distinct_ids: [...ids], uuids: ids.filter(isUuid) }
    const withoutPerson = json || ids.length > lookedUpMax ? [] : await listIdsWithoutPerson(api, ids)
    const rebuild = await waitForEnd(api, await api.post(path, { ...persons, apply }))
    if (json) process.stdout.write(`${JSON.stringify(rebuild)}\n`)
    else {
      const lines = formatReport(rebuild, createTerminal(process.stdout), withoutPerson)
      process.stdout.write(`${lines.join('\n')}\n`)
    }
  })
}

/** Looks up whether ids are known only if there are at most this many, since each takes a request. */
const lookedUpMax = 100

async function listIdsWithoutPerson(api: PrivateApi, ids: readonly string[]): Promise<readonly string[]> {
  const missing: string[] = []
  for (const id of ids) {
    const found = pickObjects((await api.get('/persons/', { distinct_id: id, limit: 1 })).results)
    if (found.length === 0 && !(isUuid(id) && (await hasPerson(api, id)))) missing.push(id)
  }
  return missing
}

async function hasPerson(api: PrivateApi, uuid: string): Promise<boolean> {
  try {
    await api.get(`/persons/${uuid}/`)
    return true
  } catch (error) {
    if (error instanceof ClientError && error.status === 404) return false
    throw error
  }
}

async function waitForEnd(api: PrivateApi, requested: JsonObject): Promise<JsonObject> {
  let rebuild = requested
  for (let pauseMs = firstPauseMs; rebuild.status !== 'completed'; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    await wait(pauseMs)
    rebuild = await api.get(`${path}${Number(requested.id)}/`)
  }
  return rebuild
}

interface Row {
  readonly uuid: string
  readonly change: string
  readonly keys: string
  readonly ids: string
}

const columns: readonly Column<Row>[] = [
  { title: 'PERSON', value: ({ uuid }) => uuid, style: () => 'bold' },
  { title: 'CHANGE', value: ({ change }) => change },
  { title: 'KEYS', value: ({ keys }) => keys, widthMin: 10 },
  { title: 'DISTINCT IDS', value: ({ ids }) => ids, widthMin: 12 },
]

/** @param withoutPerson the named ids that had no person before the rebuild. */
function formatReport(
  { apply, report: sent }: JsonObject,
  terminal: Terminal,
  withoutPerson: readonly string[],
): string[] {
  const report = isJsonObject(sent ?? null) ? (sent as JsonObject) : {}
  const count = (name: string) => Number(report[name] ?? 0)
  const countText = (name: string) => count(name).toLocaleString('en')
  const found = pickObjects(report.persons)
  const persons = found.map(toRow)
  const total = count('changed') + count('created') + count('removed')
  const lines = persons.length === 0 ? [] : formatTable(columns, persons, terminal)
  if (total > persons.length)
    lines.push(terminal.paint('dim', `… and ${(total - persons.length).toLocaleString('en')} more`))
  lines.push(
    `${formatCount(count('distinct_ids'), 'distinct id')} checked. Persons ${apply === true ? '' : 'that would be '}` +
      `changed: ${countText('changed')}, created: ${countText('created')}, removed: ${countText('removed')}; ` +
      `distinct ids moved: ${countText('moved_distinct_ids')}.`,
  )
  if (count('unreadable_distinct_ids') > 0)
    lines.push(
      `${formatCount(count('unreadable_distinct_ids'), 'distinct id stays as it is', 'distinct ids stay as they are')}: the events are too many, or the event store could not read them.`,
    )
  // A person that is missing, and whose events are stored, is created.
  const created = new Set(found.flatMap(({ uuid, distinct_ids }) => [uuid, distinct_ids].flat()))
  const unknown = withoutPerson.filter(id => !created.has(id))
  if (unknown.length > 0)
    lines.push(
      `No person has ${unknown.length === 1 ? 'the id' : 'these ids'}, and no event would create one: ${truncateList(unknown.map(toPrintableName)).join(', ')}.`,
    )
  if (apply !== true && total > 0)
    lines.push(
      'Nothing was changed. Values that only deleted events explain would be lost: check the list, then add --apply.',
    )
  return lines
}

function pickObjects(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function toRow({ uuid, change, keys, distinct_ids }: JsonObject): Row {
  const joinNames = (value: JsonValue | undefined) =>
    Array.isArray(value) ? value.map(each => toPrintableName(String(each))).join(' ') : ''
  return { uuid: String(uuid), change: String(change), keys: joinNames(keys), ids: joinNames(distinct_ids) }
}
