// An import of millions of events by `pennon import`, beside live traffic: how long live requests and live events take with
// and without it, how fast imported events are stored, and how much memory and CPU time the processes take. Then the job is
// published and discarded.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ImportCommands, mapping } from '../support/import-command.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import type { Ended } from '../support/pennon-command.ts'
import { foundLags, summary } from './found-lags.ts'
import { startLiveTraffic } from './live-traffic.ts'
import { cpuSeconds, watchMemory } from './process-figures.ts'

const api = '/api/projects/@current'
const withoutImportMs = 30_000
const askEveryMs = 50
const linesPerWrite = 10_000
const otherCores = `1-${availableParallelism() - 1}`

interface ImportOptions {
  readonly eventCount: number
  /** Whether the front has the first core for itself, and everything else shares the others. */
  readonly isPinned: boolean
  readonly log: (line: string) => void
}

/** @returns whether every event was stored and verified, was found once published, and was gone once discarded. */
export async function runImportBesideLive(options: ImportOptions): Promise<boolean> {
  const { eventCount, isPinned, log } = options
  const folder = mkdtempSync(join(tmpdir(), 'pennon-soak-'))
  const pennon = await startPennon()
  try {
    const commands = new ImportCommands(folder, {
      PENNON_PERSONAL_KEY: testPersonalKey,
      PENNON_PROJECT_KEY: testProjectKey,
    })
    const project = await prepare(pennon, commands, options)
    if (isPinned) pin(pennon)
    await measureLive(pennon, 'without an import', log)
    const isVerified = await importBesideLive(pennon, commands, options)
    await timed(log, 'published', () => commands.call('publish', '--project', project))
    const published = await countImported(pennon)
    await timed(log, 'discarded', () => commands.call('discard', '--project', project))
    const discarded = await countImported(pennon)
    log(`verified ${isVerified}; events found when published ${published}, when discarded ${discarded}`)
    return isVerified && published === eventCount && discarded === 0
  } finally {
    await pennon.stop()
    rmSync(folder, { recursive: true })
  }
}

/** Plans, stages, rehearses and approves, so that only sending is left. @returns the project's name. */
async function prepare(pennon: Pennon, commands: ImportCommands, { eventCount, log }: ImportOptions): Promise<string> {
  const raw = commands.file('raw.jsonl', '')
  await writeRecords(raw, eventCount)
  const rules = commands.file('rules.json', JSON.stringify({ ...mapping, set: 'traits' }))
  const target = ['--source', 'generic', '--mapping', rules, '--host', pennon.url]
  ended(await commands.plan([raw], ...target))
  await timed(log, `${eventCount} records staged, scanned and rehearsed`, () => commands.call('run'))
  const { name } = await pennon.api<{ name: string }>('GET', `${api}/`)
  ended(await commands.call('approve', '--project', name))
  return name
}

/** Events of ten days, a person for each fifty. */
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

async function measureLive(pennon: Pennon, when: string, log: (line: string) => void): Promise<void> {
  const traffic = startLiveTraffic(pennon)
  const endMs = performance.now() + withoutImportMs
  const lags = await foundLags(pennon, () => performance.now() >= endMs, askEveryMs)
  for (const line of [...(await traffic.end()), `lag: ${summary(lags)}`]) log(`${when}, ${line}`)
}

/** @returns whether the importer found everything stored. */
async function importBesideLive(pennon: Pennon, commands: ImportCommands, options: ImportOptions): Promise<boolean> {
  const { eventCount, log } = options
  let isOver = false
  const { child, ended: importEnded } = commands.start('run', '--rate', '1000000')
  const processes = { importer: child.pid!, serve: pennon.pid, ...pennon.childPids() }
  const before = cpuSeconds(processes)
  if (options.isPinned) pinTo(otherCores, child.pid!)
  const startMs = performance.now()
  const traffic = startLiveTraffic(pennon)
  const lags = foundLags(pennon, () => isOver, askEveryMs)
  const memory = watchMemory({ processes: () => processes, isOver: () => isOver, everyMs: 10_000, log })
  let last = before
  const stored = storedRows(pennon, eventCount, () => {
    last = cpuSeconds(processes)
  })
  const storedMs = (await stored) - startMs
  const cpu = Object.entries(last).map(([name, now]) => {
    return `${name} ${(((now - before[name]!) / eventCount) * 1e6).toFixed(0)}`
  })
  isOver = true
  for (const line of [...(await traffic.end()), `lag: ${summary(await lags)}`]) log(`beside the import, ${line}`)
  log(
    `${eventCount} events can be queried after ${(storedMs / 1_000).toFixed(1)} s: ${perSecond(eventCount, storedMs)}`,
  )
  log(`CPU, µs per imported event: ${cpu.join(', ')}`)
  log(await memory)
  const { exitCode, stdout, stderr } = await importEnded
  log(`verified ${((performance.now() - startMs) / 1_000).toFixed(1)} s after the start`)
  if (exitCode !== 0) log(stdout + stderr)
  return exitCode === 0
}

/** Resolves with the time at which all events of the import are processed: asking for the rows would count them each time. */
async function storedRows(pennon: Pennon, eventCount: number, onLook: () => void): Promise<number> {
  for (;;) {
    await sleep(1_000)
    onLook()
    const { lanes } = await pennon.api<{ lanes: { historical: { processed: number } } }>(
      'GET',
      `${api}/ingestion_status/`,
    )
    if (lanes.historical.processed >= eventCount) return performance.now()
  }
}

function pin(pennon: Pennon): void {
  for (const pid of [...Object.values(pennon.childPids()), process.pid]) pinTo(otherCores, pid)
  pinTo('0', pennon.pid)
}

function pinTo(cores: string, pid: number): void {
  execFileSync('taskset', ['-apc', cores, String(pid)], { stdio: 'ignore' })
}

async function countImported(pennon: Pennon): Promise<number> {
  const query = { kind: 'HogQLQuery', query: "SELECT count() FROM events WHERE event = 'paid'" }
  const { results } = await pennon.api<{ results: [[number]] }>('POST', `${api}/query/`, { query })
  return results[0][0]
}

function ended(result: Ended): void {
  assert.equal(result.exitCode, 0, result.stderr)
}

async function timed(log: (line: string) => void, what: string, call: () => Promise<Ended>): Promise<void> {
  const startMs = performance.now()
  ended(await call())
  log(`${what} after ${((performance.now() - startMs) / 1_000).toFixed(1)} s`)
}

function perSecond(count: number, ms: number): string {
  return `${Math.round(count / (ms / 1_000))} events/s`
}
