"""What `specconsole demo` brings along: tiny models that it writes itself, and a real llama.cpp server to run them."""
