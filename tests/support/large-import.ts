// An import of millions of simple records by `pennon import`, for soaks and benchmarks: planned, rehearsed and
// approved, so that the measurement begins with sending.

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ImportCommands, mapping } from './import-command.ts'
import { type Pennon, testPersonalKey, testProjectKey } from './pennon.ts'
import { mustSucceed } from './pennon-command.ts'

const api = '/api/projects/@current'
const linesPerWrite = 10_000
const lookEveryMs = 250

export interface LargeImport {
  readonly commands: ImportCommands
  /** The name of the project, needed for publishing and discarding. */
  readonly project: string
  /** How long staging, scanning and rehearsing took, including the start of the command. */
  readonly preparedMs: number
}

/** @param folder for the export and the job. */
export async function prepareLargeImport(pennon: Pennon, folder: string, eventCount: number): Promise<LargeImport> {
  const commands = new ImportCommands(folder, {
    PENNON_PERSONAL_KEY: testPersonalKey,
    PENNON_PROJECT_KEY: testProjectKey,
  })
  const raw = commands.file('raw.jsonl', '')
  await writeRecords(raw, eventCount)
  const rules = commands.file('rules.json', JSON.stringify({ ...mapping, set: 'traits' }))
  mustSucceed(await commands.plan([raw], '--source', 'generic', '--mapping', rules, '--host', pennon.url))
  const startMs = performance.now()
  mustSucceed(await commands.call('run'))
  const preparedMs = performance.now() - startMs
  const { name } = await pennon.api<{ name: string }>('GET', `${api}/`)
  commands.approve()
  return { commands, project: name, preparedMs }
}

/** Events of ten days, fifty for each person. */
async function writeRecords(path: string, count: number): Promise<void> {
  const file = createWriteStream(path)
  for (let from = 0; from < count; from += linesPerWrite) {
    const lines: string[] = []
    for (let index = from; index < Math.min(count, from + linesPerWrite); index++) {
      const id = `5a5a5a5a-0000-4000-8000-${index.toString(16).padStart(12, '0')}`
      const at = new Date(Date.UTC(2024, 0, 1) + (index % 864_000) * 1_000).toISOString()
      const user = `user-${Math.floor(index / 50)}`
      const props = { amount: index, page: `/checkout/${index % 100}` }
      lines.push(JSON.stringify({ id, event: 'paid', user, at, props, traits: { plan: `p${index % 3}` } }))
    }
    if (!file.write(`${lines.join('\n')}\n`)) await once(file, 'drain')
  }
  file.end()
  await once(file, 'finish')
}

/**
 * Resolves with the time at which all imported events are processed, taken from the progress, since asking for the rows
 * would count them each time.
 * @param hasEnded whether the importer has exited, which ends the wait.
 */
export async function importProcessed(
  pennon: Pennon,
  eventCount: number,
  { hasEnded, onLook }: { readonly hasEnded: () => boolean; readonly onLook: () => void },
): Promise<number> {
  for (;;) {
    await sleep(lookEveryMs)
    onLook()
    const isLastLook = hasEnded()
    const { lanes } = await pennon.api<{ lanes: { historical: { processed: number } } }>(
      'GET',
      `${api}/ingestion_status/`,
    )
    if (lanes.historical.processed >= eventCount) return performance.now()
    if (isLastLook) throw new Error(`the import ended with ${lanes.historical.processed} of ${eventCount} events`)
  }
}

export async function countImported(pennon: Pennon): Promise<number> {
  const query = { kind: 'HogQLQuery', query: "SELECT count() FROM events WHERE event = 'paid'" }
  const { results } = await pennon.api<{ results: [[number]] }>('POST', `${api}/query/`, { query })
  return results[0][0]
}
