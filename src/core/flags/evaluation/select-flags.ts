// Which flags take part in one evaluation: those for the caller's runtime and contexts, and of these the ones it names.
// Source: docs/wire/evaluation.md 5.1, 5.14.

import { isSurveyFlagKey } from '../../surveys/survey-flags.ts'
import type { CompiledFlag } from './compile-flag.ts'
import type { CompiledProject } from './compile-project.ts'
import { type FlagNeeds, unionOfNeeds } from './flag-needs.ts'

export interface FlagSelection {
  /** Null for all flags. */
  readonly flagKeys: readonly string[] | null
  /** Empty when no context was named, which leaves no flag out. */
  readonly contexts: readonly string[]
  /** Asked only when the project has flags that are for clients or for servers alone. */
  readonly runtime: RequestSource
  readonly surveyFlagsOnly: boolean
}

/** What tells where a request comes from. */
export interface RequestSource {
  /** `evaluation_runtime` of the body, as sent. */
  readonly declared: string | null
  readonly userAgent: string
  /** `origin`, `referer`, `sec-fetch-mode` or `sec-fetch-site` was sent. */
  readonly hasBrowserHeader: boolean
}

export type RequestRuntime = 'client' | 'server' | 'all' | 'unknown'

const serverLibraries = ['python', 'ruby', 'php', 'java', 'go', 'node', 'dotnet', 'elixir', 'rs', 'server']
const clientLibraries = ['js', 'android', 'ios', 'react-native', 'flutter']

export function requestRuntime(source: RequestSource): RequestRuntime {
  if (source.declared !== null) {
    const declared = source.declared.toLowerCase()
    return declared === 'client' || declared === 'server' ? declared : 'all'
  }
  const { userAgent } = source
  const library = /^posthog-([a-z-]+)\//i.exec(userAgent)?.[1]?.toLowerCase()
  if (library !== undefined && serverLibraries.includes(library)) return 'server'
  if (library !== undefined && clientLibraries.includes(library)) return 'client'
  if (/Mozilla\/|Chrome\/|Safari\/|Firefox\/|Edge\//.test(userAgent)) return 'client'
  if (/python-requests\/|curl\//.test(userAgent)) return 'server'
  return source.hasBrowserHeader ? 'client' : 'unknown'
}

/** By position, whether the flag takes part; null in the usual case that every flag does. */
export function selectFlags(project: CompiledProject, selection: FlagSelection): readonly boolean[] | null {
  const byRuntime = project.hasRuntimeFlags
  const byContext = project.hasContextFlags && selection.contexts.length > 0
  if (!byRuntime && !byContext && !selection.surveyFlagsOnly && selection.flagKeys === null) return null
  const runtime = byRuntime ? requestRuntime(selection.runtime) : 'all'
  const contexts = byContext ? new Set(selection.contexts) : noContexts
  const named = selection.flagKeys === null ? null : withDependencies(project, selection.flagKeys)
  return project.flags.map((flag, position) => {
    if (flag === undefined || (named !== null && !named.has(position))) return false
    if (selection.surveyFlagsOnly && !isSurveyFlagKey(flag.key)) return false
    return fitsRuntime(flag, runtime) && (!byContext || fitsContexts(flag, contexts))
  })
}

function fitsRuntime(flag: CompiledFlag, runtime: RequestRuntime): boolean {
  return flag.runtime === 'all' || runtime === 'all' || flag.runtime === runtime
}

const noContexts: ReadonlySet<string> = new Set()

function fitsContexts(flag: CompiledFlag, contexts: ReadonlySet<string>): boolean {
  return flag.contexts.length === 0 || flag.contexts.some(context => contexts.has(context))
}

/** Positions of the named flags and, transitively, of those they test. Unknown keys are passed over. */
function withDependencies(project: CompiledProject, flagKeys: readonly string[]): Set<number> {
  const found = new Set<number>()
  const open: number[] = []
  for (const key of flagKeys) {
    const position = project.positionOfKey.get(key)
    if (position !== undefined) open.push(position)
  }
  for (let position = open.pop(); position !== undefined; position = open.pop()) {
    if (found.has(position)) continue
    found.add(position)
    open.push(...project.dependencies[position]!)
  }
  return found
}

/** What the selected flags may read. */
export function needsOfSelected(project: CompiledProject, selected: readonly boolean[] | null): FlagNeeds {
  if (selected === null) return project.needs
  const positions = project.order.filter(position => selected[position])
  return unionOfNeeds(positions.map(position => project.flags[position]!))
}
