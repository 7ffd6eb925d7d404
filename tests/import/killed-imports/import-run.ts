// One import of an export into a project, by the commands that people use: straight through, or with the importer killed
// at random moments and called again.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FinalReport } from '#importer/verify/final-report.ts'
import { ImportCommands } from '../../support/import-command.ts'
import { type Pennon, testPersonalKey } from '../../support/pennon.ts'
import { mustSucceed } from '../../support/pennon-command.ts'

export const killedStages = ['stage', 'scan', 'rehearse', 'send', 'verify', 'publish'] as const
export type KilledStage = (typeof killedStages)[number]

export interface TargetProject {
  readonly id: number
  readonly name: string
  readonly apiToken: string
}

/** How long each stage took, ms. */
export type StageTimes = Record<KilledStage, number>

export interface KilledRun {
  readonly kills: Readonly<Record<KilledStage, number>>
  /** Calls of the importer that ended by themselves. */
  readonly endedRuns: number
  /** The most memory of the importer, as the system counts it. */
  readonly rssMaxBytes: number
  /** The longest time from the start of a call that goes on sending until more was sent; part of it is the start. */
  readonly resumeMsMax: number
}

export async function newProject(pennon: Pennon, name: string): Promise<TargetProject> {
  const made = await pennon.api<{ id: number; name: string; api_token: string }>('POST', '/api/projects/', { name })
  return { id: made.id, name: made.name, apiToken: made.api_token }
}

export class ImportRun {
  readonly job: string
  readonly #commands: ImportCommands
  readonly #plan: readonly string[]
  readonly #project: TargetProject
  readonly #rate: string

  /** @param folder of the job. @param plan what `writeSyntheticExport` returned. */
  constructor(
    pennon: Pick<Pennon, 'url'>,
    folder: string,
    plan: readonly string[],
    project: TargetProject,
    rate = 1_000_000,
  ) {
    this.#commands = new ImportCommands(folder, { PENNON_PERSONAL_KEY: testPersonalKey })
    this.job = this.#commands.job
    const target = ['--host', pennon.url, '--project-key', project.apiToken]
    this.#plan = [...plan, ...target, '--max-reject-share', '5%']
    this.#project = project
    this.#rate = String(rate)
  }

  async plan(): Promise<void> {
    const [files, ...options] = this.#plan
    mustSucceed(await this.#commands.plan([files!], ...options))
  }

  /** @returns what each stage took. */
  async straight(): Promise<StageTimes> {
    await this.plan()
    const times = Object.fromEntries(killedStages.map(stage => [stage, 0])) as StageTimes
    while (this.stage() !== 'done') {
      if (this.stage() === 'approve') {
        await this.#approve()
        continue
      }
      let stage = this.stage() as KilledStage
      let fromMs = performance.now()
      const { ended } = this.start()
      let isOver = false
      const over = ended.then(() => {
        isOver = true
      })
      while (!isOver) {
        await Promise.race([sleep(pollMs), over])
        const now = this.stage()
        if (now === stage && !isOver) continue
        times[stage] += performance.now() - fromMs
        fromMs = performance.now()
        if (now === 'approve' || now === 'done') break
        stage = now
      }
      mustSucceed(await ended)
    }
    return times
  }

  /**
   * The same, with one kill at a random moment of each of the stages that are listed, in the order of the stages.
   * @param startMs after which a command has begun its work.
   */
  async killed(
    targets: readonly KilledStage[],
    times: StageTimes,
    random: () => number,
    startMs: number,
  ): Promise<KilledRun> {
    await this.plan()
    const kills = Object.fromEntries(killedStages.map(stage => [stage, 0])) as Record<KilledStage, number>
    let [endedRuns, rssMaxBytes, resumeMsMax] = [0, 0, 0]
    const moments = targets.map(target => ({ target, share: random() }))
    const ofSend = moments.filter(({ target }) => target === 'send').toSorted((a, b) => a.share - b.share)
    for (const { target, share } of moments.map(each => (each.target === 'send' ? ofSend.shift()! : each))) {
      while (this.stage() !== 'done') {
        if (this.stage() === 'approve') {
          await this.#approve()
          continue
        }
        const { child, ended } = this.start()
        const isMoment = this.#momentIn(target, share, times[target], startMs)
        const begunMs = performance.now()
        const sentBefore = this.stage() === 'send' ? this.sentShare() : null
        let hasSent = sentBefore === null
        let isOver = false
        const over = ended.then(() => {
          isOver = true
        })
        for (let polls = 0; !isOver && !isMoment(); polls++) {
          if (!hasSent && this.sentShare() > sentBefore!) {
            hasSent = true
            resumeMsMax = Math.max(resumeMsMax, performance.now() - begunMs)
          }
          if (polls % pollsPerRss === 0) rssMaxBytes = Math.max(rssMaxBytes, residentBytes(child.pid!))
          await Promise.race([sleep(pollMs), over])
        }
        const stage = this.stage()
        child.kill('SIGKILL')
        const result = await ended
        if (child.signalCode === 'SIGKILL') {
          kills[stage === 'approve' || stage === 'done' ? target : stage]++
          break
        }
        mustSucceed(result)
        assert.ok(++endedRuns < endedRunsMax, `the job stays at ${stage}: ${result.stdout}`)
      }
    }
    while (this.stage() !== 'done') await this.next()
    return { kills, endedRuns, rssMaxBytes, resumeMsMax }
  }

  /**
   * When a run that begins now is killed: at a share of what is sent, else at a share of the stage's time. A stage may be
   * faster than it was before, and killed is only what still runs, so the last part of it is left out. Stages go on where
   * they were killed, and so some kills find theirs over: they come early in a later one, which has kills of its own.
   */
  #momentIn(target: KilledStage, share: number, stageMs: number, startMs: number): () => boolean {
    const begunMs = performance.now()
    let fromMs: number | null = null
    return () => {
      const stage = this.stage()
      if (isBefore(stage, target)) return false
      if (target === 'send' && stage === 'send')
        return performance.now() > begunMs + startMs && this.sentShare() >= share * 0.97
      fromMs ??= Math.max(performance.now(), begunMs + startMs)
      const workMs = Math.max(20, stageMs - (hasOwnStart(target) ? startMs : 0))
      return performance.now() >= fromMs + share * (stage === target ? 0.6 : 0.06) * workMs
    }
  }

  /** 0 to 1, by the lines that are committed. */
  sentShare(): number {
    if (!existsSync(join(this.job, 'checkpoint.json'))) return 0
    const { parts } = this.#json<{ parts: { committed: { line: number } }[] }>('checkpoint.json')
    const { totals } = this.#json<{ totals: { records: number } }>('manifest.json')
    return parts.reduce((sum, { committed }) => sum + committed.line, 0) / totals.records
  }

  /** Approves, or runs the command that the job is at to its end. */
  async next(): Promise<void> {
    if (this.stage() === 'approve') await this.#approve()
    else mustSucceed(await this.start().ended)
  }

  /** Calls the command that the job is at. */
  start() {
    return this.stage() === 'publish'
      ? this.#commands.start('publish', '--project', this.#project.name)
      : this.#commands.start('run', '--rate', this.#rate)
  }

  /** Where the job stands, by what is in its folder. */
  stage(): KilledStage | 'approve' | 'done' {
    const has = (name: string) => existsSync(join(this.job, name))
    if (!has('manifest.json')) return 'stage'
    if (!has('stats.json')) return 'scan'
    if (!has('rehearsal/report.json')) return 'rehearse'
    if (!has('approval.json')) return 'approve'
    if (!has('checkpoint.json') || this.#json<{ phase: string }>('checkpoint.json').phase !== 'sent') return 'send'
    if (!has('verify.json') || !has('final/report.json')) return 'verify'
    return has('verify-persons.json') ? 'done' : 'publish'
  }

  report(): FinalReport {
    return this.#json('final/report.json')
  }

  /** Says which persons are not as the import says, after it was published. */
  differencesOfPersons(): readonly string[] {
    return this.#json<{ differences: readonly string[] }>('verify-persons.json').differences
  }

  /** What the importer waits for; null when it waits for nothing, or does not run. */
  waiting(): string | null {
    const path = 'progress.json'
    return existsSync(join(this.job, path)) ? this.#json<{ waiting: string | null }>(path).waiting : null
  }

  async #approve(): Promise<void> {
    mustSucceed(await this.#commands.call('approve', '--project', this.#project.name))
  }

  #json<T>(name: string): T {
    return JSON.parse(readFileSync(join(this.job, name), 'utf8')) as T
  }
}

/** Each look reads files of the job: at 4 ms they took as much processor time as comparing what was imported. */
const pollMs = 10
const pollsPerRss = 4
/** Beyond this a command ends well and leaves the job where it was. */
const endedRunsMax = 50

/** @returns 0 for a process that is gone, and on systems without `/proc`. */
function residentBytes(pid: number): number {
  try {
    return Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024
  } catch {
    return 0
  }
}

function isBefore(stage: KilledStage | 'approve' | 'done', target: KilledStage): boolean {
  if (stage === 'approve' || stage === 'done') return false
  return killedStages.indexOf(stage) < killedStages.indexOf(target)
}

/** Stages that a command begins with: their time includes its start. */
function hasOwnStart(stage: KilledStage): boolean {
  return stage === 'stage' || stage === 'send' || stage === 'publish'
}
