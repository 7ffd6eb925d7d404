// The full guarantee for one source: an import with kills, followed by a second import of the same export, gives the
// same contents as an uninterrupted import.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { Pennon } from '../../support/pennon.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { writeSyntheticExport } from '../../support/synthetic-exports/synthetic-exports.ts'
import type { SyntheticSource } from '../../support/synthetic-exports/synthetic-source.ts'
import { ImportRun, type KilledRun, type KilledStage, killedStages, newProject, type StageTimes } from './import-run.ts'
import { contentsOf, type ProjectContents } from './project-contents.ts'

export interface KillSourceOptions {
  readonly count: number
  readonly kills: number
  readonly seed: number
  readonly keepsLines?: boolean
  readonly log?: (line: string) => void
}

export interface KillSourceFigures {
  readonly records: number
  readonly eventsSent: number
  readonly eventsStored: number
  readonly straight: StageTimes
  readonly killedMs: number
  readonly killed: KilledRun
  readonly addedBySecondRun: number
}

/** @throws AssertionError with the differences. */
export async function killSource(
  pennon: Pennon,
  folder: string,
  source: SyntheticSource,
  { count, kills, seed, keepsLines = true, log = () => {} }: KillSourceOptions,
): Promise<KillSourceFigures> {
  const random = seededRandom(seed)
  const plan = await writeSyntheticExport(source, join(folder, 'export'), { count, seed })
  const [straightProject, killedProject] = [
    await newProject(pennon, `${source.name} straight`),
    await newProject(pennon, `${source.name} killed`),
  ]
  const runIn = (name: string, project: typeof straightProject) =>
    new ImportRun(pennon, join(folder, name), plan, project)
  const contents = (project: typeof straightProject) => contentsOf(pennon, project.id, { keepsLines })

  const straightRun = runIn('straight', straightProject)
  const straight = await straightRun.straight()
  checkEnd(straightRun)
  log(`${source.name} straight: ${describeTimes(straight)}`)
  const expected = await contents(straightProject)

  const killedRun = runIn('killed', killedProject)
  const fromMs = performance.now()
  const killed = await killedRun.killed(spread(kills), straight, random, startMs)
  const killedMs = performance.now() - fromMs
  checkEnd(killedRun)
  log(`${source.name} killed: ${describeKills(killed)}, ${(killedMs / 1_000).toFixed(1)} s`)
  const found = await contents(killedProject)
  assertSame(found, expected)
  assert.deepEqual(killedRun.sent().balance, straightRun.sent().balance)

  const secondRun = runIn('second', killedProject)
  await secondRun.straight()
  checkEnd(secondRun)
  const afterSecond = await contents(killedProject)
  assertSame(afterSecond, expected)
  return {
    records: straightRun.sent().balance.read,
    eventsSent: straightRun.sent().balance.sent,
    eventsStored: expected.eventCount,
    straight,
    killedMs,
    killed,
    addedBySecondRun: afterSecond.eventCount - found.eventCount,
  }
}

/** Approximate time that a command takes to load. */
const startMs = 300
/** The share of kills per stage: sending takes longest and matters most. */
const shares: Readonly<Record<KilledStage, number>> = {
  ...{ stage: 0.2, scan: 0.1, rehearse: 0.1, send: 0.4, verify: 0.1, publish: 0.1 },
}

/** Every stage gets at least one kill, and sending gets the rest. */
function spread(kills: number): KilledStage[] {
  const targets = killedStages.flatMap(stage =>
    Array<KilledStage>(stage === 'send' ? 0 : Math.max(1, Math.round(kills * shares[stage]))).fill(stage),
  )
  const rest = Array<KilledStage>(Math.max(0, kills - targets.length)).fill('send')
  return killedStages.flatMap(stage => (stage === 'send' ? rest : targets.filter(target => target === stage)))
}

function checkEnd(run: ImportRun): void {
  const { balance, verification } = run.sent()
  assert.ok(balance.isBalanced, JSON.stringify(balance))
  assert.ok(verification?.ok, JSON.stringify(verification?.checks))
  assert.equal(verification.stored_rows, verification.expected_rows)
  assert.deepEqual(run.differencesOfPersons(), [])
}

export function assertSame(found: ProjectContents, expected: ProjectContents): void {
  const { lines: _, ...some } = found
  const { lines: __, ...all } = expected
  const missing = [...expected.lines.difference(found.lines)].slice(0, shownMax)
  const added = [...found.lines.difference(expected.lines)].slice(0, shownMax)
  assert.deepEqual({ missing, added }, { missing: [], added: [] })
  assert.deepEqual(some, all)
}

const shownMax = 5

export function describeTimes(times: StageTimes): string {
  return killedStages.map(stage => `${stage} ${(times[stage] / 1_000).toFixed(2)} s`).join(', ')
}

export function describeKills({ kills, endedRuns }: KilledRun): string {
  const words = killedStages.filter(stage => kills[stage] > 0).map(stage => `${kills[stage]} in ${stage}`)
  return `${killCount(kills)} kills (${words.join(', ')}), ${endedRuns} runs ended before theirs`
}

export function killCount(kills: KilledRun['kills']): number {
  return Object.values(kills).reduce((sum, count) => sum + count, 0)
}
