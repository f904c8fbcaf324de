advertise = "https://boards-1.example.org:7422"
data_dir  = "/tmp/x"
