// Kills processes at random moments under load and checks that every acknowledged event is there exactly once.

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'

export const victims = ['tree', 'work', 'events', 'serve'] as const
export type Victim = (typeof victims)[number]

export interface KillRoundsOptions {
  readonly rounds: number
  /** Further environment variables of the instance, such as where its state is. */
  readonly settings?: Readonly<Record<string, string>>
  /** Kills something of the outside as well, in the middle of each round; resolves when it is back. */
  readonly disturb?: () => Promise<void>
  readonly random: () => number
  readonly log: (line: string) => void
}

export interface KillRoundsResult {
  readonly acknowledgedCount: number
  readonly missing: readonly string[]
  readonly doubled: readonly string[]
}

/** Senders post one event, a batch of ten or a historical batch of ten, and remember what was answered 200. */
export async function runKillRounds(options: KillRoundsOptions): Promise<KillRoundsResult> {
  const { rounds, random, log, settings = {}, disturb } = options
  const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-kill-'))
  const start = () => startPennon({ dataFolder, settings, waitForProcessing: false })
  const acknowledged: string[] = []
  let pennon = await start()
  try {
    for (let round = 0; round < rounds; round++) {
      const victim = victims[Math.floor(random() * victims.length)]!
      const load = startLoad(pennon, acknowledged)
      await pause(50 + random() * 600)
      await disturb?.()
      await kill(pennon, victim)
      if (victim === 'work' || victim === 'events') await pause(100 + random() * 300)
      await load.stop()
      log(`round ${round + 1}/${rounds}: killed ${victim}, ${acknowledged.length} events acknowledged`)
      if (victim === 'tree' || victim === 'serve') pennon = await start()
    }
    await pennon.caughtUp(120_000)
    const counts = await countByUuid(pennon)
    return {
      acknowledgedCount: acknowledged.length,
      missing: acknowledged.filter(uuid => !counts.has(uuid)),
      doubled: [...counts].filter(([, count]) => count > 1).map(([uuid]) => uuid),
    }
  } finally {
    await pennon.killTree()
    rmSync(dataFolder, { recursive: true, force: true })
  }
}

function startLoad(pennon: Pennon, acknowledged: string[]): { stop(): Promise<void> } {
  let isStopping = false
  const send = async (sender: number) => {
    while (!isStopping) {
      const size = sender % 3 === 0 ? 1 : 10
      const uuids = Array.from({ length: size }, () => randomUUID())
      const events = uuids.map((uuid, index) => ({
        event: 'kill test',
        uuid,
        distinct_id: `user ${index % 4}`,
        properties: { sender },
      }))
      const body =
        size === 1
          ? { api_key: testProjectKey, ...events[0] }
          : { api_key: testProjectKey, batch: events, ...(sender % 3 === 2 && { historical_migration: true }) }
      try {
        const response = await pennon.post(size === 1 ? '/capture/' : '/batch/', body)
        if (response.status === 200) acknowledged.push(...uuids)
        await response.arrayBuffer()
      } catch {
        await pause(5) // the front is being killed; nothing was acknowledged
      }
    }
  }
  const senders = Promise.all([0, 1, 2, 3, 4, 5].map(send))
  return {
    stop: async () => {
      isStopping = true
      await senders
    },
  }
}

async function kill(pennon: Pennon, victim: Victim): Promise<void> {
  if (victim === 'tree') return pennon.killTree()
  const pid = victim === 'serve' ? pennon.pid : pennon.childPids()[victim]
  if (pid === undefined) return // being restarted after the round before
  process.kill(pid, 'SIGKILL')
  await eventually(() => !isAlive(pid), { what: `the end of ${victim}` })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Every event of the project through the private API, page by page. */
async function countByUuid(pennon: Pennon): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  let path: string | null = '/api/projects/@current/events/?event=kill%20test&limit=1000'
  while (path !== null) {
    const page: { next: string | null; results: { uuid: string }[] } = await pennon.api('GET', path)
    for (const { uuid } of page.results) counts.set(uuid, (counts.get(uuid) ?? 0) + 1)
    path = page.next === null ? null : page.next.replace(/^https?:\/\/[^/]+/, '')
  }
  return counts
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
