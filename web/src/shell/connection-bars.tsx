// What hangs over every screen while the server does not answer, or no longer knows the session. The screen stays as it is.

import { useMutation } from '@tanstack/react-query'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { call } from '../api/client.ts'
import { noteSession, readConnection, watchConnection } from '../api/connection.ts'
import { queries } from '../api/queries.ts'
import { type SignedIn, sessionQuery } from '../api/session.ts'
import { Button } from '../components/controls/button.tsx'
import { TextField } from '../components/fields/text-field.tsx'
import { Dialog } from '../components/overlays/dialog.tsx'
import { StaleBar } from '../components/states/stale-bar.tsx'
import { Refusal } from '../components/states/states.tsx'

const triedEveryMs = 2_000

export function ConnectionBars({ session }: { session: SignedIn }) {
  const { awaySinceMs, isSessionOver } = useSyncExternalStore(watchConnection, readConnection)
  const isAway = awaySinceMs !== null
  useEffect(() => {
    if (!isAway) return
    const timer = setInterval(async () => {
      try {
        await call('GET /api/session/')
        // What is shown may have changed meanwhile.
        queries.invalidateQueries()
      } catch {
        // The call itself has noted whether there was an answer.
      }
    }, triedEveryMs)
    return () => clearInterval(timer)
  }, [isAway])
  return (
    <>
      {isAway && <StaleBar asOfMs={awaySinceMs} />}
      {isSessionOver && <SignInAgain user={session.user} />}
    </>
  )
}

/** The same person goes on with what they typed; another one starts afresh. */
function SignInAgain({ user }: { user: SignedIn['user'] }) {
  const [email, setEmail] = useState(user.email ?? '')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => call('POST /api/session/', { body: { email, password } }),
    onSuccess: session => {
      if (session.user.id !== user.id) return location.assign('/ui/')
      queries.setQueryData(sessionQuery.queryKey, session)
      noteSession(false)
      queries.invalidateQueries()
    },
  })
  return (
    <Dialog title="Your session is over" isOpen isKept onClose={() => location.assign('/ui/sign-in')}>
      <form
        onSubmit={event => {
          event.preventDefault()
          signIn.mutate()
        }}
      >
        <p>Sign in again to go on where you were.</p>
        <TextField label="E-mail" type="email" autoComplete="username" value={email} onChange={setEmail} />
        <TextField
          label="Password"
          type="password"
          autoComplete="current-password"
          value={password}
          onChange={setPassword}
          autoFocus
        />
        <Refusal error={signIn.error} />
        <Button type="submit" kind="filled" isBusy={signIn.isPending}>
          Sign in
        </Button>
      </form>
    </Dialog>
  )
}
