import { useEffect, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { Bar } from '../../components/controls/bar.tsx'
import { countSecondsUntil, formatSeconds } from '../../components/states/countdown.ts'

/** Why a form was refused; counts down where it says when to try again. */
export function Refusal({ error }: { error: Error | null }) {
  const untilMs = error instanceof ApiError && error.status === 429 ? error.retryAtMs : undefined
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    if (untilMs === undefined) return
    const timer = setInterval(() => setNowMs(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [untilMs])
  if (error === null) return null
  if (untilMs === undefined) return <Bar kind="bad">{error.message}</Bar>
  const seconds = countSecondsUntil(untilMs, nowMs)
  return <Bar kind="bad">Too many tries. {seconds > 0 ? `Again in ${formatSeconds(seconds)}.` : 'Try again now.'}</Bar>
}
