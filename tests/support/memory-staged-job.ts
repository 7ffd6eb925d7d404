// A staged job whose records are generated from a seed, so that they are the same in every process without any file.

import { sha256Hex } from '#importer/job/sha256.ts'
import type { StagedJob, StagedOutcome, StagedPart } from '#importer/job/staged-part.ts'
import { deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { seededRandom } from './seeded-random.ts'

export interface MemoryJobOptions {
  readonly seed: number
  readonly days: number
  readonly recordsPerDay: number
  readonly persons?: number
  /** Characters added to each event. */
  readonly padding?: number
}

const dayUs = 86_400_000_000
const firstDayUs = Date.UTC(2024, 4, 1) * 1_000
const names = ['$pageview', 'order placed', 'signed up', 'ünïcode ☂']

export function memoryStagedJob(options: MemoryJobOptions): StagedJob {
  const { seed, days, recordsPerDay, persons = 50 } = options
  const parts: StagedPart[] = Array.from({ length: days }, (_, day) => ({
    id: `${dayText(day)}/0`,
    sha256: sha256Hex(`${JSON.stringify(options)} ${day}`),
    bytes: recordsPerDay * 100,
    records: recordsPerDay,
    firstUs: firstDayUs + day * dayUs,
    lastUs: firstDayUs + (day + 1) * dayUs - 1,
  }))
  const generated = generatedOf(seed, persons)
  const generatedParts = Object.entries(generated).map(([name, events]) => ({
    id: `${name}/0`,
    sha256: sha256Hex(JSON.stringify(events)),
    bytes: events.length * 100,
    records: events.length,
    firstUs: events[0]!.timeUs,
    lastUs: events.at(-1)!.timeUs,
  }))
  return {
    parts: [...generatedParts, ...parts],
    async *readPart(part, afterLine = 0) {
      const day = parts.indexOf(part)
      for (let line = afterLine + 1; line <= part.records; line++)
        yield day < 0
          ? generatedOutcome(generated[part.id.split('/')[0]!]![line - 1]!, line)
          : outcomeOf(options, day, line, persons)
    },
  }
}

/** Every event of the job, in send order. */
export async function eventsOf(job: StagedJob): Promise<ImportedEvent[]> {
  const events: ImportedEvent[] = []
  for (const part of job.parts)
    for await (const { result } of job.readPart(part)) if (result.kind === 'events') events.push(...result.events)
  return events
}

function generatedOf(seed: number, persons: number): Record<string, ImportedEvent[]> {
  const groups = Array.from({ length: 5 }, (_, at) => ({
    uuid: deriveImportUuid('groupidentify', String(seed), String(at)),
    event: '$groupidentify',
    distinctId: `user-${at}`,
    timeUs: firstDayUs + at * dayUs,
    properties: { $group_type: 'company', $group_key: `c${at}`, $group_set: { size: at } },
  }))
  const links = Array.from({ length: persons }, (_, at) => ({
    uuid: deriveImportUuid('identify', String(seed), String(at)),
    event: '$identify',
    distinctId: `user-${at}`,
    timeUs: firstDayUs + at * 60_000_000,
    properties: { $anon_distinct_id: `device-${at}` },
  }))
  return { groups, links }
}

function generatedOutcome(event: ImportedEvent, line: number): StagedOutcome {
  const text = JSON.stringify(event)
  return {
    ...{ line, raw: { object: 'generated', line, byte: 0 }, textBytes: text.length },
    source: () => ({ text, sha256: sha256Hex(text), unreadableBytes: null }),
    result: { kind: 'events', events: [event], notes: [], dropped: [] },
  }
}

function outcomeOf({ seed, padding = 0 }: MemoryJobOptions, day: number, line: number, persons: number): StagedOutcome {
  const random = seededRandom(seed * 1_000_003 + day * 7_919 + line)
  const text = JSON.stringify({ day, line })
  const base = {
    line,
    raw: { object: `raw/${day}.jsonl`, line, byte: (line - 1) * 100 },
    textBytes: text.length,
    source: () => ({ text, sha256: sha256Hex(text), unreadableBytes: null }),
  }
  const kind = random()
  if (kind < 0.02) return { ...base, result: { kind: 'rejected', reason: 'event_missing', field: 'event' } }
  if (kind < 0.04) return { ...base, result: { kind: 'skipped', reason: 'session_marker' } }
  if (kind < 0.05) return { ...base, result: { kind: 'collapsed' } }
  const person = Math.floor(random() * persons)
  const distinctId = random() < 0.3 ? `device-${person}` : `user-${person}`
  const events = Array.from({ length: random() < 0.1 ? 2 : 1 }, (_, at) => ({
    uuid: deriveImportUuid('memory', String(seed), String(day), String(line), String(at)),
    event: names[Math.floor(random() * names.length)]!,
    distinctId,
    timeUs: firstDayUs + day * dayUs + line * 1_000 + at,
    properties: { line, day, ...(padding > 0 && { padding: 'é'.repeat(padding) }) },
  }))
  return { ...base, result: { kind: 'events', events, notes: [], dropped: [] } }
}

function dayText(day: number): string {
  return new Date((firstDayUs + day * dayUs) / 1_000).toISOString().slice(0, 10)
}
