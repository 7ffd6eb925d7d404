// An import of millions of events by `pennon import` beside live traffic. Measures the latencies of live requests and
// events with and without the import, the import rate, and the memory and CPU time of the processes. The job is then
// published and discarded.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ImportCommands } from '../support/import-command.ts'
import { countImported, importProcessed, prepareLargeImport } from '../support/large-import.ts'
import { type Pennon, startPennon } from '../support/pennon.ts'
import { type Ended, mustSucceed } from '../support/pennon-command.ts'
import { foundLags, summary } from './found-lags.ts'
import { startLiveTraffic } from './live-traffic.ts'
import { cpuSeconds, watchMemory } from './process-figures.ts'
import { numberOf } from './settings.ts'

const withoutImportMs = 30_000
const askEveryMs = 50
const otherCores = `1-${availableParallelism() - 1}`

/** Whether the front has the first core exclusively, and everything else shares the others. */
const isPinned = process.env.PIN === '1'

/** @returns whether every event was stored and verified, visible when published, and gone when discarded. */
export async function runImportBesideLive(): Promise<boolean> {
  const eventCount = numberOf('EVENTS', 5_000_000)
  const folder = mkdtempSync(join(tmpdir(), 'pennon-soak-'))
  const pennon = await startPennon()
  const restoreGroups = isPinned ? withoutSessionGroups() : () => {}
  try {
    const { commands, project, preparedMs } = await prepareLargeImport(pennon, folder, eventCount)
    console.log(`${eventCount} records staged, scanned and rehearsed after ${inSeconds(preparedMs)}`)
    if (isPinned) pin(pennon)
    await measureLive(pennon, 'without an import')
    const isVerified = await importBesideLive(pennon, commands, eventCount)
    await timed('published', () => commands.call('publish', '--project', project))
    const published = await countImported(pennon)
    await timed('discarded', () => commands.call('discard', '--project', project))
    const discarded = await countImported(pennon)
    console.log(`verified ${isVerified}; events found when published ${published}, when discarded ${discarded}`)
    return isVerified && published === eventCount && discarded === 0
  } finally {
    restoreGroups()
    await pennon.stop()
    rmSync(folder, { recursive: true })
  }
}

async function measureLive(pennon: Pennon, when: string): Promise<void> {
  const traffic = startLiveTraffic(pennon)
  const endMs = performance.now() + withoutImportMs
  const lags = await foundLags(pennon, () => performance.now() >= endMs, askEveryMs)
  for (const line of [...(await traffic.end()), `lag: ${summary(lags)}`]) console.log(`${when}, ${line}`)
}

/** @returns whether the importer verified that everything is stored. */
async function importBesideLive(pennon: Pennon, commands: ImportCommands, eventCount: number): Promise<boolean> {
  let isOver = false
  const { child, ended: importEnded } = commands.start('run', '--rate', '1000000')
  const processes = { importer: child.pid!, serve: pennon.pid, ...pennon.childPids() }
  const before = cpuSeconds(processes)
  if (isPinned) {
    pinTo(otherCores, child.pid!)
    setPriority(child.pid!, 0)
  }
  const startMs = performance.now()
  const traffic = startLiveTraffic(pennon)
  const lags = foundLags(pennon, () => isOver, askEveryMs)
  const memory = watchMemory({ processes: () => processes, isOver: () => isOver, everyMs: 10_000 })
  let last = before
  const processedMs = importProcessed(pennon, eventCount, {
    hasEnded: () => child.exitCode !== null,
    onLook: () => {
      last = cpuSeconds(processes)
    },
  })
  const storedMs = (await processedMs) - startMs
  const cpu = Object.entries(last).map(([name, now]) => {
    return `${name} ${(((now - before[name]!) / eventCount) * 1e6).toFixed(0)}`
  })
  isOver = true
  for (const line of [...(await traffic.end()), `lag: ${summary(await lags)}`])
    console.log(`beside the import, ${line}`)
  console.log(`${eventCount} events can be queried after ${inSeconds(storedMs)}: ${perSecond(eventCount, storedMs)}`)
  console.log(`CPU, µs per imported event: ${cpu.join(', ')}`)
  console.log(await memory)
  const { exitCode, stdout, stderr } = await importEnded
  console.log(`verified ${inSeconds(performance.now() - startMs)} after the start`)
  if (exitCode !== 0) console.log(stdout + stderr)
  return exitCode === 0
}

/**
 * The measuring process has priority on the shared cores; otherwise its waiting for them would count as the front's.
 */
const measuringPriority = -10

function pin(pennon: Pennon): void {
  setPriority(measuringPriority)
  for (const pid of [...Object.values(pennon.childPids()), process.pid]) pinTo(otherCores, pid)
  pinTo('0', pennon.pid)
}

/**
 * Linux shares a processor between sessions before it applies priorities, and the instance has a separate session.
 * @returns a function that restores the setting.
 */
function withoutSessionGroups(): () => void {
  if (!existsSync(sessionGroups)) return () => {}
  const before = readFileSync(sessionGroups)
  writeFileSync(sessionGroups, '0')
  return () => writeFileSync(sessionGroups, before)
}

const sessionGroups = '/proc/sys/kernel/sched_autogroup_enabled'

function pinTo(cores: string, pid: number): void {
  execFileSync('taskset', ['-apc', cores, String(pid)], { stdio: 'ignore' })
}

async function timed(what: string, call: () => Promise<Ended>): Promise<void> {
  const startMs = performance.now()
  mustSucceed(await call())
  console.log(`${what} after ${inSeconds(performance.now() - startMs)}`)
}

function perSecond(count: number, ms: number): string {
  return `${Math.round(count / (ms / 1_000))} events/s`
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
