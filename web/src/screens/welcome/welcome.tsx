// Where a one-time link leads: to one's first steps, from an invitation, or back in after a forgotten password.

import { useMutation, useQuery } from '@tanstack/react-query'
import { useLocation, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ApiError, call } from '../../api/client.ts'
import type { Operations } from '../../api/schema.ts'
import { beginSession } from '../../api/session.ts'
import { Button } from '../../components/controls/button.tsx'
import { splitError } from '../../components/fields/split-error.ts'
import { TextField } from '../../components/fields/text-field.tsx'
import { Skeleton } from '../../components/states/skeleton.tsx'
import { ErrorState, Gone, Refusal } from '../../components/states/states.tsx'
import { RouteLink } from '../../shell/route-link.tsx'
import { EntryForm, EntryPage } from '../sign-in/entry-form.tsx'
import { articleAndRole } from '../users/roles.ts'

type CheckedLink = Operations['POST /api/session/link/check/']['answer']

const titles = {
  welcome: 'Welcome to Pennon',
  invitation: 'Welcome to Pennon',
  reset: 'Choose a new password',
} as const

/** Taken out of the address, since it is a secret. Another link that is opened in the same tab changes the hash alone. */
function useToken(): string {
  const hash = useLocation({ select: location => location.hash })
  const [taken, setTaken] = useState('')
  useEffect(() => {
    if (hash === '') return
    setTaken(hash)
    history.replaceState(history.state, '', location.pathname)
  }, [hash])
  return hash === '' ? taken : hash
}

export function Welcome() {
  const token = useToken()
  const link = useQuery({
    queryKey: ['link', token],
    queryFn: () => call('POST /api/session/link/check/', { body: { token } }),
    enabled: token !== '',
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (link.isSuccess) return <LinkForm key={token} token={token} link={link.data} />
  return (
    <EntryPage title="Welcome to Pennon">
      {token === '' ? (
        <Gone title="This page needs a link">
          Open the whole link that you were given, or <RouteLink to="/sign-in">sign in</RouteLink>.
        </Gone>
      ) : link.isPending ? (
        <Skeleton what="The link" rowCount={3} />
      ) : isRefused(link.error) ? (
        <ErrorState title="This link cannot be used" error={link.error}>
          {link.error.message} <RouteLink to="/sign-in">Sign in</RouteLink> if you have a password, or ask for another
          link: on the machine that runs Pennon, <code>pennon sign-in-link</code> prints one.
        </ErrorState>
      ) : (
        <ErrorState title="The link could not be checked" error={link.error} onRetry={link.refetch} />
      )}
    </EntryPage>
  )
}

/** For good: not because the server is busy, or there were too many tries. */
function isRefused(error: Error): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429
}

function LinkForm({ token, link }: { token: string; link: CheckedLink }) {
  const [name, setName] = useState(link.name)
  const [email, setEmail] = useState(link.email ?? '')
  const [password, setPassword] = useState('')
  const navigate = useNavigate()
  const spend = useMutation({
    mutationFn: (withPassword: boolean) => {
      const body = {
        token,
        ...(name.trim() !== '' && { name }),
        ...(email.trim() !== '' && { email }),
        ...(withPassword && password !== '' && { password }),
      }
      return beginSession(() => call('POST /api/session/link/', { body }))
    },
    onSuccess: () => navigate({ to: '/', replace: true }),
  })
  const isReset = link.purpose === 'reset'
  const missing = !isReset && email.trim() === '' ? 'Type your e-mail address first' : null
  const state = {
    isBusy: spend.isPending,
    disabledReason: missing ?? (password === '' ? 'Type a password first' : null),
  }
  const { errors, rest } = splitError(spend.error, ['name', 'email', 'password'])
  return (
    <EntryForm title={titles[link.purpose]} onSubmit={() => spend.mutate(true)} {...state}>
      {!isReset && (
        <p>{link.is_new_user ? `You will be ${articleAndRole[link.role]}.` : 'You have an account here already.'}</p>
      )}
      {!isReset && (
        <TextField
          label="Name"
          name="name"
          autoComplete="name"
          value={name}
          onChange={setName}
          error={errors.name}
          autoFocus
        />
      )}
      <TextField
        label="E-mail"
        type="email"
        name="email"
        autoComplete="username"
        value={email}
        onChange={setEmail}
        error={errors.email}
        isReadOnly={isReset}
        help={isReset ? undefined : 'With it you sign in. Nothing is sent to it.'}
      />
      <TextField
        label="Password"
        type="password"
        name="password"
        autoComplete="new-password"
        value={password}
        onChange={setPassword}
        error={errors.password}
        help="12 characters or more. A sentence is fine."
      />
      <Refusal error={rest} />
      <Button type="submit" kind="filled" {...state}>
        {isReset ? 'Change password and sign in' : 'Sign in'}
      </Button>
      {link.purpose === 'welcome' && (
        <Button kind="bare" isBusy={spend.isPending} onPress={() => spend.mutate(false)}>
          Later: stay signed in on this browser
        </Button>
      )}
    </EntryForm>
  )
}
