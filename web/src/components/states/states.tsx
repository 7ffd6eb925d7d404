// What a screen shows in place of its content, and a form when it is refused.

import { type ReactNode, useEffect, useEffectEvent, useReducer } from 'react'
import { joinClasses } from '../class-names.ts'
import { Bar } from '../controls/bar.tsx'
import { Button } from '../controls/button.tsx'
import { Icon } from '../icon.tsx'
import type { IconName } from '../icon-names.ts'
import { CopyButton } from '../overlays/copy-button.tsx'
import { Outside } from '../text/outside.tsx'
import { countSecondsUntil, formatSeconds } from './countdown.ts'
import css from './states.module.css'

export interface EmptyStateProps {
  /** "No flags yet". */
  readonly title: string
  /** What belongs here, and why there is nothing. */
  readonly children?: ReactNode
  /** One button. */
  readonly action?: ReactNode
}

export function EmptyState({ title, children, action }: EmptyStateProps) {
  return (
    <State title={title} action={action}>
      {children}
    </State>
  )
}

export interface NoMatchProps {
  /** What was looked for, as it was typed. */
  readonly filter: string
  readonly onClear: () => void
}

export function NoMatch({ filter, onClear }: NoMatchProps) {
  return (
    <State title="No match" action={<Button onPress={onClear}>Drop the filter</Button>}>
      Nothing matches <Outside text={filter} isCode />.
    </State>
  )
}

/** What is known of an error of the API. */
export interface ShownError extends Error {
  readonly status?: number
  readonly code?: string
  readonly retryAtMs?: number | undefined
  readonly details?: string
}

export interface ErrorStateProps {
  /** What failed, in words: "The flags could not be loaded". */
  readonly title: string
  /** Gives what of the following is absent. */
  readonly error?: ShownError
  /** What it means and what to do. */
  readonly children?: ReactNode
  /** The code of the answer. */
  readonly code?: string
  readonly onRetry?: () => void
  /** When to try by itself, in ms since the epoch: from `Retry-After`. */
  readonly retryAtMs?: number
  /** For who is asked for help: request id and time, no secrets. */
  readonly details?: string
}

export function ErrorState({ title, error, onRetry, ...given }: ErrorStateProps) {
  const { code, retryAtMs, details, children = error?.message } = { ...error, ...given }
  const seconds = useCountdown(retryAtMs, onRetry)
  return (
    <State
      title={title}
      icon="circle-alert"
      action={
        <>
          {onRetry && (
            <Button icon="refresh-cw" onPress={onRetry}>
              Try again
            </Button>
          )}
          {details !== undefined && <CopyButton label="Copy details" text={details} hasWords />}
        </>
      }
    >
      {children}
      {seconds !== null && <p>Tries again in {formatSeconds(seconds)}.</p>}
      {code !== undefined && <p className={css.code}>Code: {code}</p>}
    </State>
  )
}

export interface NotAllowedProps {
  /** What cannot be done or seen: "Persons". */
  readonly what: string
  /** Which right is missing, and who can give it. */
  readonly children: ReactNode
}

export function NotAllowed({ what, children }: NotAllowedProps) {
  return (
    <State title={`${what}: not allowed`} icon="lock">
      {children}
    </State>
  )
}

export interface GoneProps {
  /** "Flag 12 was deleted". */
  readonly title: string
  /** What became of it, with a link there. */
  readonly children?: ReactNode
}

export function Gone({ title, children }: GoneProps) {
  return (
    <State title={title} icon="info">
      {children}
    </State>
  )
}

/** Why a form was refused; counts down where it says when to try again. */
export function Refusal({ error }: { error: ShownError | null }) {
  const untilMs = error?.status === 429 ? error.retryAtMs : undefined
  const seconds = useCountdown(untilMs, undefined)
  if (error === null) return null
  if (seconds === null) return <Bar kind="bad">{error.message}</Bar>
  return <Bar kind="bad">Too many tries. {seconds > 0 ? `Again in ${formatSeconds(seconds)}.` : 'Try again now.'}</Bar>
}

interface StateProps {
  readonly title: string
  readonly icon?: IconName
  readonly children?: ReactNode
  readonly action?: ReactNode
}

function State({ title, icon, children, action }: StateProps) {
  return (
    <div className={css.state} role={icon === 'circle-alert' ? 'alert' : undefined}>
      <h2 className={joinClasses(css.title, icon === 'circle-alert' && css.bad)}>
        {icon && <Icon name={icon} />}
        {title}
      </h2>
      {children && <div className={css.text}>{children}</div>}
      {action && <div className={css.actions}>{action}</div>}
    </div>
  )
}

/** @returns the seconds that are left, or null without an instant. Calls once when it comes. */
function useCountdown(untilMs: number | undefined, onEnd: (() => void) | undefined): number | null {
  const [, tick] = useReducer((count: number) => count + 1, 0)
  const end = useEffectEvent(() => onEnd?.())
  useEffect(() => {
    if (untilMs === undefined) return
    // A tab that slept finds that the time has come, since the clock is read at every tick.
    const timer = setInterval(() => {
      tick()
      if (Date.now() < untilMs) return
      clearInterval(timer)
      end()
    }, 1_000)
    return () => clearInterval(timer)
  }, [untilMs])
  return untilMs === undefined ? null : countSecondsUntil(untilMs, Date.now())
}
