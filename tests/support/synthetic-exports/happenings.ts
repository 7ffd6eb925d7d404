// The events of an imaginary company, for exports that each tool writes in its own shape: users with several devices
// and devices with several users, groups whose properties change, thirty days in random order, texts in many scripts,
// and the faults of real exports. The same seed gives the same happenings, however many are requested at once.

import { seededRandom } from '../seeded-random.ts'

export interface Happening {
  /** Unique, except where the export repeats a record. */
  readonly index: number
  readonly kind: 'view' | 'order' | 'click' | 'identify' | 'session' | 'company'
  /** Microseconds since 1970. */
  readonly timeUs: number
  /** Null for a user who is not known yet. */
  readonly user: string | null
  readonly device: string
  readonly company: string | null
  readonly plan: string
  readonly amount: number
  readonly page: string
  /** Beyond 2^53, so that a reader that rounds numbers is noticed. */
  readonly bigId: bigint
  /** The fault of the record; null for nearly all. */
  readonly fault: 'without id' | 'nobody' | 'bad time' | 'broken' | null
}

export interface HappeningOptions {
  readonly count: number
  readonly seed: number
}

export const firstDayMs = Date.UTC(2024, 2, 1)
export const dayCount = 30
const dayUs = 86_400_000_000
const recentMax = 200
const pages = ['/', '/precios', '/料金', '/цены', '/prix/été', '/pricing?q=🎈', '/تسعير', '/docs/a"b,c']
const plans = ['free', 'pro', 'größer', '企業']

/** Memory use does not depend on the count. */
export function* happenings({ count, seed }: HappeningOptions): Generator<Happening> {
  const random = seededRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const userCount = Math.max(20, Math.floor(count / 20))
  const recent: Happening[] = []
  for (let index = 0; index < count; index++) {
    if (recent.length > 0 && random() < 0.01) {
      yield recent[below(recent.length)]!
      continue
    }
    const person = below(userCount)
    const happening: Happening = {
      index,
      kind: kindOf(random()),
      timeUs: firstDayMs * 1_000 + Math.floor(random() * dayCount * dayUs),
      // A tenth of all happenings belongs to another user of a shared device.
      user: random() < 0.4 ? null : `u-${random() < 0.1 ? below(userCount) : person}`,
      device: `d-${person}-${below(2)}`,
      company: random() < 0.3 ? `company-${person % 40}` : null,
      plan: plans[below(plans.length)]!,
      // Multiples of a quarter, whose sums are exact in any order.
      amount: below(400_000) / 4,
      page: pages[below(pages.length)]!,
      bigId: 9_007_199_254_740_993n + BigInt(index) * 2n,
      fault: faultOf(random()),
    }
    if (recent.length < recentMax) recent.push(happening)
    else recent[index % recentMax] = happening
    yield happening
  }
}

function kindOf(chance: number): Happening['kind'] {
  if (chance < 0.6) return 'view'
  if (chance < 0.8) return 'order'
  if (chance < 0.9) return 'click'
  if (chance < 0.96) return 'identify'
  return chance < 0.98 ? 'session' : 'company'
}

function faultOf(chance: number): Happening['fault'] {
  if (chance < 0.01) return 'without id'
  if (chance < 0.012) return 'nobody'
  if (chance < 0.013) return 'bad time'
  return chance < 0.014 ? 'broken' : null
}

/** `2024-03-01 12:00:00.123456` */
export function wallTime(timeUs: number): string {
  const micros = String(timeUs % 1_000).padStart(3, '0')
  return `${new Date(Math.floor(timeUs / 1_000)).toISOString().slice(0, -1).replace('T', ' ')}${micros}`
}

/** The same for the same position in the same export. */
export function uuidFor(seed: number, index: number): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0').slice(-digits)
  return `${hex(seed, 8)}-0000-4000-8000-${hex(index, 12)}`
}
