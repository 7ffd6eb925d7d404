// What every screen shows while the server does not answer, or no longer knows the session. The screen stays as it is.

import { useMutation } from '@tanstack/react-query'
import { useState, useSyncExternalStore } from 'react'
import { call } from '../api/client.ts'
import { readConnection, watchConnection } from '../api/connection.ts'
import { queries } from '../api/queries.ts'
import { type SignedIn, sessionQuery } from '../api/session.ts'
import { Button } from '../components/controls/button.tsx'
import { Form } from '../components/fields/form.tsx'
import { TextField } from '../components/fields/text-field.tsx'
import { Dialog } from '../components/overlays/dialog.tsx'
import { StaleBar } from '../components/states/stale-bar.tsx'
import { Refusal } from '../components/states/states.tsx'
import { LinkHint } from './link-hint.tsx'

export function ConnectionBars({ session }: { session: SignedIn }) {
  const { awaySinceMs, isSessionOver } = useSyncExternalStore(watchConnection, readConnection)
  return (
    <>
      {awaySinceMs !== null && <StaleBar asOfMs={awaySinceMs} />}
      {isSessionOver && <SignInAgain user={session.user} />}
    </>
  )
}

/** If the same person signs in, the screen keeps what they typed. Another person gets the start screen. */
function SignInAgain({ user }: { user: SignedIn['user'] }) {
  const [email, setEmail] = useState(user.email ?? '')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => call('POST /api/session/', { body: { email, password } }),
    onSuccess: session => {
      if (session.user.id !== user.id) return location.assign('/ui/')
      queries.setQueryData(sessionQuery.queryKey, session)
      queries.invalidateQueries()
    },
  })
  const state = { isBusy: signIn.isPending }
  return (
    <Dialog title="Your session is over" isOpen isKept onClose={() => location.assign(signInAddress())}>
      <Form onSubmit={() => signIn.mutate()} {...state}>
        <p>Sign in again to continue where you were.</p>
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
        <Button type="submit" kind="filled" {...state}>
          Sign in
        </Button>
        <LinkHint />
      </Form>
    </Dialog>
  )
}

/** Where one signs in, and then returns to this screen. */
function signInAddress(): string {
  const next = location.pathname.replace(/^\/ui/, '') + location.search
  return `/ui/sign-in?${new URLSearchParams({ next })}`
}
