// Compares the events of two projects: the one that a rehearsal was sent to, and the target of the import.
// Source: docs/wire/import.md §2.7 (scratch run).

import { numberOf } from '#core/json.ts'
import { JobStopped } from '../job/job-paused.ts'
import type { ServiceApi } from '../send/job-api.ts'
import type { EventSpan } from './expected-events.ts'

export interface HeldEvents {
  readonly events: number
  readonly persons: number
}

export interface ComparedEvent {
  readonly event: string
  /** Sent to the rehearsal project. */
  readonly sent: number
  /** Null if the project has no events of this name. */
  readonly rehearsal: HeldEvents | null
  readonly target: HeldEvents | null
}

export interface ProjectDiff {
  readonly rows: readonly ComparedEvent[]
  /** Names with fewer events in the rehearsal project than were sent. */
  readonly missing: readonly string[]
  /** Names that the target does not have: new events, or events that have another name there. */
  readonly newInTarget: readonly string[]
}

/** @param sent to the rehearsal project, by event name. */
export async function compareProjects(
  sent: ReadonlyMap<string, EventSpan>,
  rehearsal: ServiceApi,
  target: ServiceApi,
): Promise<ProjectDiff> {
  const [there, here] = [await readHeldEvents(rehearsal), await readHeldEvents(target)]
  const names = [...new Set([...sent.keys(), ...there.keys()])].toSorted()
  const rows = names.map(event => ({
    event,
    sent: sent.get(event)?.count ?? 0,
    rehearsal: there.get(event) ?? null,
    target: here.get(event) ?? null,
  }))
  return {
    rows,
    missing: rows.filter(row => row.sent > (row.rehearsal?.events ?? 0)).map(({ event }) => event),
    newInTarget: rows.filter(row => row.sent > 0 && row.target === null).map(({ event }) => event),
  }
}

async function readHeldEvents(api: ServiceApi): Promise<Map<string, HeldEvents>> {
  const query =
    'SELECT event, count() AS events, count(DISTINCT person_id) AS persons FROM events GROUP BY event LIMIT 50000'
  const { results } = await api.call('POST', '/query/', { body: { query: { kind: 'HogQLQuery', query } } })
  if (!Array.isArray(results)) throw new JobStopped(`${api.address} does not answer queries like Pennon`)
  const rows = results.filter(Array.isArray)
  return new Map(
    rows.map(([event, events, persons]) => [
      String(event),
      { events: numberOf(events ?? null) ?? 0, persons: numberOf(persons ?? null) ?? 0 },
    ]),
  )
}
