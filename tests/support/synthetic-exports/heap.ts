// Heap's tables as files: page views, one labelled event, sessions, users, and which users were merged.
// Source: docs/wire/import.md §1.4.

import { lineFile } from './export-files.ts'
import { type Happening, wallTime } from './happenings.ts'
import { jsonLine, type SyntheticSource } from './synthetic-source.ts'

type Table = 'pageviews' | 'checkout_done' | 'sessions' | 'users' | 'user_migrations'

const tableOf: Record<Happening['kind'], Table> = {
  view: 'pageviews',
  click: 'pageviews',
  order: 'checkout_done',
  session: 'sessions',
  identify: 'users',
  company: 'user_migrations',
}
const tables = ['pageviews', 'checkout_done', 'sessions', 'users', 'user_migrations'] as const
const firstUserId = 8_123_456_789_012_000_000n

export const heap: SyntheticSource = {
  name: 'heap',
  config: { event_names: { checkout_done: 'Checkout Done' } },
  open: ({ folder, part }) => {
    const files = new Map(tables.map(table => [table, lineFile(`${folder}/sync-${part}/${table}.json.gz`)]))
    return {
      add(each) {
        const table = tableOf[each.kind]
        files.get(table)!.add(jsonLine(each, rowOf(table, each)))
      },
      async end() {
        for (const file of files.values()) await file.end()
      },
    }
  },
}

function rowOf(table: Table, happening: Happening): object {
  const { timeUs, user, device, plan, fault } = happening
  const time = fault === 'bad time' ? 'soon' : wallTime(timeUs).slice(0, -3)
  const userId = fault === 'nobody' ? null : userIdOf(device)
  switch (table) {
    case 'users':
      return {
        user_id: userId,
        identity: user === null || fault === 'nobody' ? null : `${user}@example.test`,
        joindate: '2024-02-29 08:00:00',
        last_modified: time,
        initial_platform: 'Mac OS X 14.4',
        initial_utm_source: '(not set)',
        plan,
      }
    case 'user_migrations':
      return { from_user_id: firstUserId - BigInt(happening.index) - 1n, to_user_id: userId, time }
    default:
      return eventRow(happening, userId, time)
  }
}

function eventRow({ bigId, amount, page, fault }: Happening, userId: bigint | null, time: string): object {
  return {
    event_id: fault === 'without id' ? null : bigId,
    user_id: userId,
    session_id: bigId + 1n,
    time,
    domain: 'app.example.test',
    path: page,
    query: '?a=1',
    browser: 'Firefox',
    platform: 'Windows 11',
    landing_page: 'https://app.example.test/start',
    amount,
  }
}

function userIdOf(device: string): bigint {
  const [, person, which] = device.split('-')
  return firstUserId + BigInt(person!) * 2n + BigInt(which!)
}
