/** For people without a password. */
export function LinkHint() {
  return (
    <p>
      No password, or forgotten? An admin can give you a link. On the machine that runs Pennon,{' '}
      <code>pennon sign-in-link</code> prints one.
    </p>
  )
}
