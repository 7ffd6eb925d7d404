// One import of an export into a project by the public commands: uninterrupted, or with the importer killed at random
// moments and restarted.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readApproval } from '#importer/job/approval.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { isGeneratedPart } from '#importer/job/staged-part.ts'
import { readCheckpoint } from '#importer/send/checkpoint.ts'
import type { ImportReport, SentSummary } from '#importer/stages/report/import-report.ts'
import { readSentSummary } from '#importer/verify/sent-summary.ts'
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

/** Duration of each stage, ms. */
export type StageTimes = Record<KilledStage, number>

export interface KilledRun {
  readonly kills: Readonly<Record<KilledStage, number>>
  /** Calls of the importer that exited by themselves. */
  readonly endedRuns: number
  /** Peak memory of the importer, as measured by the system. */
  readonly rssMaxBytes: number
  /** The longest time from the start of a resumed sending until more was sent, including the start of the process. */
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

  /** @param folder of the job. @param plan the result of `writeSyntheticExport`. */
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

  /** @returns the duration of each stage. */
  async straight(): Promise<StageTimes> {
    await this.plan()
    const times = Object.fromEntries(killedStages.map(stage => [stage, 0])) as StageTimes
    while (this.stage() !== 'done') {
      if (this.stage() === 'approve') {
        this.#approve()
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
   * Like `straight`, with one kill at a random moment of each listed stage, in the order of the stages.
   * @param startMs time that a command takes to start.
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
          this.#approve()
          continue
        }
        const { child, ended } = this.start()
        const isKillDue = this.#planKill(target, share, times[target], startMs)
        const begunMs = performance.now()
        const sentBefore = this.stage() === 'send' ? this.sentShare() : null
        let hasSent = sentBefore === null
        let isOver = false
        const over = ended.then(() => {
          isOver = true
        })
        for (let polls = 0; !isOver && !isKillDue(); polls++) {
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
   * When a run that begins now is killed: at a share of what is sent, else at a share of the stage's time. A stage may
   * be faster than before, and only a running command can be killed, so the last part of a stage is left out. Stages
   * continue after a kill, so a kill may find its stage finished: it then comes early in a later stage, which also has
   * kills assigned to it.
   */
  #planKill(target: KilledStage, share: number, stageMs: number, startMs: number): () => boolean {
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

  /** 0 to 1, by committed lines. */
  sentShare(): number {
    const { parts } = readCheckpoint(new JobFolder(this.job)) ?? { parts: [] }
    const { totals } = this.#json<{ totals: { records: number } }>('manifest.json')
    const ofRecords = parts.filter(part => !isGeneratedPart(part))
    return ofRecords.reduce((sum, { counts }) => sum + counts.read, 0) / totals.records
  }

  /** Approves the job, or runs its next command to the end. */
  async next(): Promise<void> {
    if (this.stage() === 'approve') this.#approve()
    else mustSucceed(await this.start().ended)
  }

  /** Starts the next command of the job. */
  start() {
    return this.stage() === 'publish'
      ? this.#commands.start('publish', '--project', this.#project.name)
      : this.#commands.start('run', '--rate', this.#rate)
  }

  /** The stage that the job is in, judged by its folder. */
  stage(): KilledStage | 'approve' | 'done' {
    const has = (name: string) => existsSync(join(this.job, name))
    if (!has('manifest.json')) return has('job.db') ? 'scan' : 'stage'
    if (!has('report.json')) return 'rehearse'
    const folder = new JobFolder(this.job)
    if (readApproval(folder) === null) return 'approve'
    const sent = readSentSummary(folder)
    if (sent?.isAll !== true) return 'send'
    if (sent.verification === null) return 'verify'
    return sent.persons === null ? 'publish' : 'done'
  }

  sent(): SentSummary {
    return this.#json<ImportReport>('report.json').sent!
  }

  /** Persons that differ from what the import says, found after publishing. */
  differencesOfPersons(): readonly string[] {
    return readSentSummary(new JobFolder(this.job))!.persons!.differences
  }

  /** What the importer waits for; null when it does not wait or does not run. */
  waiting(): string | null {
    const path = 'progress.json'
    return existsSync(join(this.job, path)) ? this.#json<{ waiting: string | null }>(path).waiting : null
  }

  #approve(): void {
    this.#commands.approve()
  }

  #json<T>(name: string): T {
    return JSON.parse(readFileSync(join(this.job, name), 'utf8')) as T
  }
}

/** Each poll reads files of the job: every 4 ms this took as much processor time as comparing the results. */
const pollMs = 10
const pollsPerRss = 4
/** Beyond this, the commands succeed without advancing the job. */
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

/** Stages that begin with a command: their time includes its start. */
function hasOwnStart(stage: KilledStage): boolean {
  return stage === 'stage' || stage === 'send' || stage === 'publish'
}
