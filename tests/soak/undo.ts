// Undoing an import of many persons who also have live events: how long it takes, and whether each person is afterwards
// what it was before, byte for byte.

import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { numberOf } from './settings.ts'

const api = '/api/projects/@current'
const eventsPerRequest = 2_000
const firstMs = Date.now() - 20 * 86_400_000

/** @returns whether the persons are what they were, and the job has no notes. */
export async function runUndo(): Promise<boolean> {
  const [personCount, liveEventCount] = [numberOf('PERSONS', 20_000), numberOf('EVENTS', 1_000_000)]
  const importedPerPerson = numberOf('IMPORTED', 3)
  const pennon = await startPennon()
  try {
    await send(pennon, liveEventCount, index => {
      const user = index % personCount
      const visit = Math.floor(index / personCount)
      const isIdentify = visit === 1 && user % 3 === 0
      return {
        event: isIdentify ? '$identify' : '$pageview',
        distinct_id: `user-${user}`,
        properties: {
          $current_url: `https://shop.example/checkout/${index % 1_000}`,
          $browser: 'Firefox',
          $os: 'Linux',
          ...(isIdentify && { $anon_distinct_id: `anon-${user}` }),
          $set: { visits: visit, plan: `p${visit % 3}` },
        },
        timestamp: new Date(firstMs + index).toISOString(),
      }
    })
    await pennon.caughtUp(3_600_000)
    console.log(`${liveEventCount} live events of ${personCount} persons stored`)
    const before = await listPersons(pennon)
    const job = await pennon.api<{ id: number; number: number }>('POST', `${api}/import_jobs/`, { source: 'csv' })
    const headers = { 'x-import-job': String(job.id) }
    const importedCount = personCount * importedPerPerson
    await send(
      pennon,
      importedCount,
      index => ({
        event: index % importedPerPerson === 0 ? '$identify' : 'paid',
        distinct_id: `user-${Math.floor(index / importedPerPerson)}`,
        properties: {
          ...(index % importedPerPerson === 0 && { $anon_distinct_id: `old-${Math.floor(index / importedPerPerson)}` }),
          $set: { plan: 'old', country: 'AT', amount: index },
        },
        timestamp: new Date(Date.UTC(2024, 0, 1) + index * 1_000).toISOString(),
      }),
      headers,
    )
    await pennon.caughtUp(3_600_000)
    const published = await close(pennon, job.number, 'publish', 'published')
    const during = await listPersons(pennon)
    const discarded = await close(pennon, job.number, 'discard', 'discarded')
    const after = await listPersons(pennon)
    const { notes } = await pennon.api<{ notes: readonly unknown[] }>('GET', `${api}/import_jobs/${job.number}/report/`)
    console.log(`${importedCount} events published in ${published} s, undone in ${discarded} s`)
    const isChanged = !isDeepStrictEqual(before, during)
    const other = after.findIndex((person, index) => person !== before[index])
    console.log(`changed by the job: ${isChanged}; notes: ${JSON.stringify(notes)}`)
    if (other >= 0) console.log(`not as before: ${before[other]} is now ${after[other]}`)
    return isChanged && other === -1 && before.length === after.length && notes.length === 0
  } finally {
    await pennon.stop()
  }
}

async function send(
  pennon: Pennon,
  count: number,
  eventOf: (index: number) => object,
  headers: Record<string, string> = {},
): Promise<void> {
  for (let from = 0; from < count; from += eventsPerRequest) {
    const batch = Array.from({ length: Math.min(eventsPerRequest, count - from) }, (_, index) => eventOf(from + index))
    const isImport = Object.keys(headers).length > 0
    for (;;) {
      const body = { api_key: testProjectKey, batch, ...(isImport && { historical_migration: true }) }
      const response = await pennon.post('/batch/', body, headers)
      if (response.status === 200) break
      if (response.status !== 429 && response.status !== 503) throw new Error(await response.text())
      await sleep(200)
    }
  }
}

/** @returns how long it took, in seconds. */
async function close(pennon: Pennon, job: number, how: 'publish' | 'discard', end: string): Promise<string> {
  const startMs = performance.now()
  await pennon.api('POST', `${api}/import_jobs/${job}/${how}/`)
  for (;;) {
    const { state, failure } = await pennon.api<{ state: string; failure: unknown }>(
      'GET',
      `${api}/import_jobs/${job}/`,
    )
    if (state === end) return ((performance.now() - startMs) / 1_000).toFixed(1)
    if (failure !== null) throw new Error(JSON.stringify(failure))
    await sleep(100)
  }
}

/** All persons with their ids and properties, in a fixed order. */
async function listPersons(pennon: Pennon): Promise<string[]> {
  const persons: string[] = []
  let path: string | null = `${api}/persons/?limit=1000`
  while (path !== null) {
    type Page = { readonly next: string | null; readonly results: readonly Record<string, unknown>[] }
    const page: Page = await pennon.api<Page>('GET', path)
    // Versions go on, so that nothing can be mistaken for what it was in between.
    for (const { version: _, distinct_id_versions: __, ...person } of page.results) persons.push(JSON.stringify(person))
    path = page.next === null ? null : page.next.replace(pennon.url, '')
  }
  return persons.sort()
}
