// A job for the commands of `pennon import`, as users call them.

import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createApproval, storeApproval } from '#importer/job/approval.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { readPlan } from '#importer/job/plan.ts'
import { requireManifest } from '../../src/commands/import/job/job-stages.ts'
import { type Pennon, testProjectKey } from './pennon.ts'
import { callCommand, type Ended, startCommand } from './pennon-command.ts'
import { seededRandom } from './seeded-random.ts'
import { tempDir } from './temp-dir.ts'

export const mapping = {
  event: 'event',
  distinct_id: 'user',
  timestamp: 'at',
  uuid: 'id',
  properties: 'props',
  anon_id: 'device',
}

/** Records of thirty days in random order: some are broken, some linked to devices, some without an id and repeated. */
export function syntheticRecords(count: number, seed: number): string {
  const random = seededRandom(seed)
  const lines: string[] = []
  for (let index = 0; index < count; index++) {
    const at = new Date(Date.UTC(2024, 0, 1) + Math.floor(random() * 30 * 86_400_000)).toISOString()
    const user = `u-${Math.floor(random() * count * 0.1)}`
    const record = { id: `r-${index}`, event: random() < 0.7 ? '$pageview' : 'Order paid', user, at, props: { index } }
    const chance = random()
    if (chance < 0.002) lines.push('not json')
    else if (chance < 0.004) lines.push(JSON.stringify({ ...record, user: null }))
    else if (chance < 0.02) lines.push(...Array<string>(2).fill(JSON.stringify({ ...record, id: undefined })))
    else if (chance < 0.1) lines.push(JSON.stringify({ ...record, device: `d-${Math.floor(random() * 500)}` }))
    else lines.push(JSON.stringify(record))
  }
  return `${lines.join('\n')}\n`
}

/** A job that is planned, if its options allow that, for a file with this text. */
export async function plannedJob(t: TestContext, text: string, ...options: readonly string[]): Promise<ImportCommands> {
  const commands = new ImportCommands(tempDir(t))
  await commands.plan([commands.file('raw.jsonl', text)], ...options)
  return commands
}

export class ImportCommands {
  readonly job: string
  readonly #folder: string
  readonly #settings: Readonly<Record<string, string>>

  /** @param folder of the test; the job is in a subfolder. @param settings environment variables of the commands. */
  constructor(folder: string, settings: Readonly<Record<string, string>> = {}) {
    this.#folder = folder
    this.#settings = settings
    this.job = join(folder, 'job')
    mkdirSync(folder, { recursive: true })
  }

  /** Writes a file next to the job. @returns its path. */
  file(name: string, content: string): string {
    const path = join(this.#folder, name)
    writeFileSync(path, content)
    return path
  }

  plan(files: readonly string[], ...options: readonly string[]): Promise<Ended> {
    const given = options.includes('--source')
      ? options
      : ['--source', 'generic', '--mapping', this.file('mapping.json', JSON.stringify(mapping)), ...options]
    return callCommand(this.#settings, 'import', 'plan', this.job, ...files, ...given)
  }

  call(command: string, ...options: readonly string[]): Promise<Ended> {
    return callCommand(this.#settings, 'import', command, this.job, ...options)
  }

  /**
   * Approves the rehearsed job, as a run that ended right after the approval leaves it, so that only sending remains.
   */
  approve(): void {
    const folder = new JobFolder(this.job)
    const parts = { plan: readPlan(folder)!, manifest: requireManifest(folder) }
    storeApproval(folder, createApproval(parts, new Date().toISOString()))
  }

  /** @returns the options with which `run` approves and sends the rehearsed job. */
  async yes(): Promise<readonly ['--yes', string]> {
    const { stdout } = await this.call('status', '--json')
    const { approvalSha256 } = JSON.parse(stdout) as { readonly approvalSha256: string }
    return ['--yes', approvalSha256]
  }

  /**
   * Plans an import to an instance, rehearses and approves it.
   * @returns the options that name its project.
   */
  async approved(
    pennon: Pick<Pennon, 'api' | 'url'>,
    files: readonly string[],
    ...options: readonly string[]
  ): Promise<readonly string[]> {
    const { name } = await pennon.api<{ name: string }>('GET', '/api/projects/@current/')
    const project = ['--project', name]
    const ended = [
      await this.plan(files, ...options, '--host', pennon.url, '--project-key', testProjectKey),
      await this.call('run'),
    ]
    for (const { exitCode, stderr } of ended) assert.equal(exitCode, 0, stderr)
    this.approve()
    return project
  }

  start(command: string, ...options: readonly string[]) {
    return startCommand(this.#settings, 'import', command, this.job, ...options)
  }
}
