// Versions: parses and orders them, and compiles the version operators.
// Source: docs/wire/evaluation.md 5.9.3.

export interface Semver {
  readonly major: bigint
  readonly minor: bigint
  readonly patch: bigint
  /** Dot-separated identifiers; empty for a release. */
  readonly prerelease: readonly string[]
  readonly build: readonly string[]
}

export const semverOperators = [
  'semver_eq',
  'semver_neq',
  'semver_gt',
  'semver_gte',
  'semver_lt',
  'semver_lte',
  'semver_tilde',
  'semver_caret',
  'semver_wildcard',
] as const
export type SemverOperator = (typeof semverOperators)[number]

const numberMax = 2n ** 64n - 1n
/** Bounds the parsing of texts from the public; no real version is longer. Source: ours. */
const versionCharsMax = 1_000
const identifiers = /^[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*$/

/** What a version must be to match. */
export type VersionTest =
  | { readonly kind: 'order'; readonly comparison: keyof typeof orders; readonly filter: Semver }
  /**
   * From the filter's own version up to `end`, exclusive; a pre-release matches only if the filter is a pre-release too,
   * with equal numbers.
   */
  | { readonly kind: 'range'; readonly filter: Semver; readonly end: Semver }
  /** A release that begins with these numbers. */
  | { readonly kind: 'numbers'; readonly numbers: readonly bigint[] }

const orders = {
  '=': (order: number) => order === 0,
  '!=': (order: number) => order !== 0,
  '>': (order: number) => order > 0,
  '>=': (order: number) => order >= 0,
  '<': (order: number) => order < 0,
  '<=': (order: number) => order <= 0,
}

/** Compiles a filter's value into a test of a property's text; null when no version can ever satisfy it. */
export function compileSemver(operator: SemverOperator, filterText: string): ((text: string) => boolean) | null {
  const test = readVersionTest(operator, filterText)
  if (test === null) return null
  if (test.kind === 'order') return matchOrder(test.filter, orders[test.comparison])
  return test.kind === 'range' ? matchRange(test.filter, test.end) : matchNumbers(test.numbers)
}

/** Null when no version can ever satisfy the filter. */
export function readVersionTest(operator: SemverOperator, filterText: string): VersionTest | null {
  if (operator === 'semver_wildcard') return readWildcard(filterText)
  const filter = parseSemver(filterText)
  if (filter === null) return null
  switch (operator) {
    case 'semver_eq':
      return { kind: 'order', comparison: '=', filter }
    case 'semver_neq':
      return { kind: 'order', comparison: '!=', filter }
    case 'semver_gt':
      return { kind: 'order', comparison: '>', filter }
    case 'semver_gte':
      return { kind: 'order', comparison: '>=', filter }
    case 'semver_lt':
      return { kind: 'order', comparison: '<', filter }
    case 'semver_lte':
      return { kind: 'order', comparison: '<=', filter }
    case 'semver_tilde':
      return { kind: 'range', filter, end: createVersion(filter.major, filter.minor + 1n, 0n) }
    case 'semver_caret':
      return { kind: 'range', filter, end: computeCaretEnd(filter) }
    default:
      return operator satisfies never
  }
}

/** Reads `v1.02` as 1.2.0; null for more than three parts and any other text that is not a version. */
export function parseSemver(text: string): Semver | null {
  if (text.length > versionCharsMax) return null
  const trimmed = (text.startsWith('v') ? text.slice(1) : text).trim()
  const tailAt = trimmed.search(/[-+]/)
  const numbers = (tailAt < 0 ? trimmed : trimmed.slice(0, tailAt)).split('.')
  if (numbers.length > 3 || numbers.some(part => !/^\d{1,40}$/.test(part))) return null
  const [major = 0n, minor = 0n, patch = 0n] = numbers.map(BigInt)
  if (major > numberMax || minor > numberMax || patch > numberMax) return null
  const tail = tailAt < 0 ? '' : trimmed.slice(tailAt)
  const plusAt = tail.indexOf('+')
  const prerelease = tail.startsWith('-') ? tail.slice(1, plusAt < 0 ? undefined : plusAt) : null
  const build = plusAt < 0 ? null : tail.slice(plusAt + 1)
  if (prerelease !== null && !(identifiers.test(prerelease) && !hasLeadingZero(prerelease))) return null
  if (build !== null && !identifiers.test(build)) return null
  return { major, minor, patch, prerelease: prerelease?.split('.') ?? [], build: build?.split('.') ?? [] }
}

function hasLeadingZero(prerelease: string): boolean {
  return prerelease.split('.').some(part => /^0\d+$/.test(part))
}

/** Negative, 0 or positive. A pre-release sorts before its release; build metadata is compared last. */
export function compareSemver(a: Semver, b: Semver): number {
  return compareNumbers(a, b) || comparePrereleases(a.prerelease, b.prerelease) || compareIdentifiers(a.build, b.build)
}

function compareNumbers(a: Semver, b: Semver): number {
  return sign(a.major - b.major) || sign(a.minor - b.minor) || sign(a.patch - b.patch)
}

function comparePrereleases(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return Math.sign(b.length - a.length)
  return compareIdentifiers(a, b)
}

function compareIdentifiers(a: readonly string[], b: readonly string[]): number {
  for (let index = 0; index < Math.min(a.length, b.length); index++) {
    const order = compareIdentifier(a[index]!, b[index]!)
    if (order !== 0) return order
  }
  return Math.sign(a.length - b.length)
}

function compareIdentifier(a: string, b: string): number {
  const aIsNumber = /^\d+$/.test(a)
  const bIsNumber = /^\d+$/.test(b)
  // Leading zeros, which only build metadata may have, break ties: 1.0.0+01 differs from 1.0.0+1.
  if (aIsNumber && bIsNumber) return sign(BigInt(a) - BigInt(b)) || Math.sign(a.length - b.length)
  if (aIsNumber !== bIsNumber) return aIsNumber ? -1 : 1
  return a < b ? -1 : a > b ? 1 : 0
}

function sign(difference: bigint): number {
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

function createVersion(major: bigint, minor: bigint, patch: bigint): Semver {
  return { major, minor, patch, prerelease: [], build: [] }
}

function matchOrder(filter: Semver, test: (order: number) => boolean): (text: string) => boolean {
  return text => {
    const version = parseSemver(text)
    return version !== null && test(compareSemver(version, filter))
  }
}

function matchRange(filter: Semver, end: Semver): (text: string) => boolean {
  return text => {
    const version = parseSemver(text)
    if (version === null || compareNumbers(version, end) >= 0) return false
    if (compareNumbers(version, filter) < 0) return false
    if (version.prerelease.length > 0) {
      if (filter.prerelease.length === 0 || compareNumbers(version, filter) !== 0) return false
    }
    return compareNumbers(version, filter) > 0 || comparePrereleases(version.prerelease, filter.prerelease) >= 0
  }
}

/** The next version that changes the left-most part that is not zero. */
function computeCaretEnd({ major, minor, patch }: Semver): Semver {
  if (major > 0n) return createVersion(major + 1n, 0n, 0n)
  return minor > 0n ? createVersion(0n, minor + 1n, 0n) : createVersion(0n, 0n, patch + 1n)
}

/** Reads `1.2.*`, `1.*`, `*`; without a star, a caret range of the given parts (`1` admits 1.x, `0` admits 0.x). */
function readWildcard(filterText: string): VersionTest | null {
  const text = (filterText.startsWith('v') ? filterText.slice(1) : filterText).trim()
  if (/[<>=~^,]/.test(text)) return null
  if (!text.includes('*')) {
    const filter = parseSemver(text)
    return filter === null ? null : { kind: 'range', filter, end: computeWildcardCaretEnd(filter, text) }
  }
  const parts = text.split('.')
  const star = parts.indexOf('*')
  if (parts.length > 3 || parts.slice(star).some(part => part !== '*')) return null
  const given = parts.slice(0, star)
  if (given.some(part => !/^\d{1,40}$/.test(part))) return null
  return { kind: 'numbers', numbers: given.map(BigInt) }
}

function matchNumbers(numbers: readonly bigint[]): (text: string) => boolean {
  return candidate => {
    const version = parseSemver(candidate)
    if (version === null || version.prerelease.length > 0) return false
    const own = [version.major, version.minor, version.patch]
    return numbers.every((number, index) => own[index] === number)
  }
}

function computeWildcardCaretEnd(filter: Semver, text: string): Semver {
  const partCount = text.split(/[-+]/, 1)[0]!.split('.').length
  if (filter.major === 0n && partCount === 1) return createVersion(1n, 0n, 0n)
  if (filter.major === 0n && filter.minor === 0n && partCount === 2) return createVersion(0n, 1n, 0n)
  return computeCaretEnd(filter)
}
