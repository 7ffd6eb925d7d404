// A long run of the tests in `tests/import/kill-….ci.ts`: a million records and a hundred kills per source, with
// timings. A failure prints the differences and ends the run of its source.

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeKills, type KillSourceFigures, killCount, killSource } from '../import/killed-imports/kill-source.ts'
import { startPennon } from '../support/pennon.ts'
import { syntheticSources, writeSyntheticExport } from '../support/synthetic-exports/synthetic-exports.ts'
import type { SyntheticSource } from '../support/synthetic-exports/synthetic-source.ts'
import { removeFolder } from '../support/temp-dir.ts'
import { numberOf, printedSeed } from './settings.ts'

/** Larger exports are compared by checksums only. */
const keptCountMax = 100_000

/** @returns whether every source had the expected contents, with at least four of five kills. */
export async function runImportKills(): Promise<boolean> {
  const seed = printedSeed()
  const [count, kills] = [numberOf('EVENTS', 1_000_000), numberOf('KILLS', 100)]
  let hasPassed = true
  for (const source of chosenSources()) {
    const folder = mkdtempSync(join(tmpdir(), 'pennon-import-kills-'))
    const pennon = await startPennon({ dataFolder: join(folder, 'data') })
    try {
      const options = { count, kills, seed, keepsLines: count <= keptCountMax, log: console.log }
      const figures = await killSource(pennon, folder, source, options)
      for (const line of figureLines(source, figures)) console.log(line)
      hasPassed &&= killCount(figures.killed.kills) >= kills * 0.8
    } catch (error) {
      hasPassed = false
      console.log(`${source.name}: ${String(error)}`)
    } finally {
      await pennon.stop()
      await removeFolder(folder)
    }
  }
  return hasPassed
}

/** Writes exports and keeps them, to try an importer on by hand. */
export async function writeExports(): Promise<boolean> {
  const folder = process.env.FOLDER ?? 'synthetic-exports'
  const size = { count: numberOf('EVENTS', 1_000_000), seed: numberOf('SEED', 1) }
  for (const source of chosenSources()) {
    const plan = await writeSyntheticExport(source, join(folder, source.name), size)
    console.log(`pennon import plan JOB ${plan.join(' ')}`)
  }
  return true
}

/** All, unless SOURCE names one. */
function chosenSources(): readonly SyntheticSource[] {
  const name = process.env.SOURCE
  const found = syntheticSources.filter(source => name === undefined || source.name === name)
  if (found.length === 0)
    throw new Error(`SOURCE has to be one of ${syntheticSources.map(source => source.name).join(', ')}, not ${name}`)
  return found
}

function figureLines({ name }: SyntheticSource, figures: KillSourceFigures): string[] {
  const { records, eventsSent, eventsStored, straight, killedMs, killed, addedBySecondRun } = figures
  const seconds = (ms: number) => (ms / 1_000).toFixed(1)
  const total = Object.values(straight).reduce((sum, ms) => sum + ms, 0)
  const prepared = straight.stage + straight.scan + straight.rehearse
  return [
    `${name}: ${records} records, ${eventsStored} events stored; straight ${seconds(total)} s`,
    `  staged, scanned and rehearsed ${perSecond(records, prepared)} records/s, sent ${perSecond(eventsSent, straight.send)} events/s`,
    `  ${describeKills(killed)}; ${seconds(killedMs)} s`,
    `  differences 0, added by the second run ${addedBySecondRun}`,
    `  memory of the importer at most ${Math.round(killed.rssMaxBytes / 2 ** 20)} MiB, longest time until a call went on sending ${seconds(killed.resumeMsMax)} s`,
  ]
}

function perSecond(count: number, ms: number): number {
  return Math.round((count * 1_000) / ms)
}
